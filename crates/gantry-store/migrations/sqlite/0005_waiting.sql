-- One index of the calls that wait does for both questions: how many a caller has, and whether a principal has any.
DROP INDEX approvals_callers;
DROP INDEX approvals_waiting;
CREATE INDEX approvals_waiting ON approvals (principal, project, agent, state)
  WHERE state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY');
