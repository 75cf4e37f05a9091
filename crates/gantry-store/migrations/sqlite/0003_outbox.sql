-- `announced` said whether the webhook had taken the request. It now counts how much it has taken: 0 nothing, 1 the request,
-- 2 the decision, 3 everything there will be to send (also where there is no webhook). Of rows from before, a request that
-- was taken and still waits goes on from there; nothing more is sent about the others.
UPDATE approvals SET announced = 3 WHERE announced = 1 AND state <> 'PENDING_APPROVAL';

-- Whether something is to be sent. A request that ended before it was taken is not sent at all.
ALTER TABLE approvals ADD COLUMN unsent INTEGER AS (CASE announced
    WHEN 0 THEN iif(state = 'PENDING_APPROVAL', 1, NULL)
    WHEN 1 THEN iif(state <> 'PENDING_APPROVAL', 1, NULL)
    WHEN 2 THEN iif(ended_us IS NOT NULL, 1, NULL)
  END) VIRTUAL;
DROP INDEX approvals_unannounced;
CREATE INDEX approvals_unsent ON approvals (project) WHERE unsent IS NOT NULL;
