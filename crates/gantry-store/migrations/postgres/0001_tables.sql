-- The tables as the statements of this crate expect them: the same columns as after the last migration for SQLite. Numbers
-- are bigint and flags smallint, because the statements compare flags with 0 and 1.

-- Append-only; each entry's hash covers the entry and the hash before it in the chain of its node. `step` numbers the entries
-- of one call, whatever node wrote them: the first is 0, and no two entries are the same step.
CREATE TABLE ledger (
  node bytea NOT NULL,
  seq bigint NOT NULL,
  kind text NOT NULL,
  call bytea NOT NULL,
  step bigint NOT NULL,
  process bytea NOT NULL,
  at bigint NOT NULL,
  project text NOT NULL,
  session bytea NOT NULL,
  principal text NOT NULL,
  name text NOT NULL,
  state text NOT NULL,
  body text NOT NULL,
  hash bytea NOT NULL,
  PRIMARY KEY (node, seq),
  UNIQUE (call, step)
);
CREATE INDEX ledger_session ON ledger (session, call) WHERE step = 0;

-- The newest entry of each chain, and what its first entry is chained to.
CREATE TABLE ledger_heads (
  node bytea PRIMARY KEY,
  seq bigint NOT NULL,
  hash bytea NOT NULL,
  genesis bytea NOT NULL
);

-- Intents without an outcome, so that recovery looks at these alone.
CREATE TABLE open_calls (
  call bytea PRIMARY KEY,
  process bytea NOT NULL
);

CREATE TABLE idempotency (
  call bytea PRIMARY KEY,
  project text NOT NULL,
  principal text NOT NULL,
  key text NOT NULL,
  at bigint NOT NULL,
  UNIQUE (project, principal, key)
);
CREATE INDEX idempotency_at ON idempotency (at);

-- Results are kept for a while only, so they are not part of the ledger.
CREATE TABLE results (
  call bytea PRIMARY KEY,
  at bigint NOT NULL,
  result text NOT NULL
);
CREATE INDEX results_at ON results (at);

CREATE TABLE sessions (
  id bytea PRIMARY KEY,
  project text NOT NULL,
  principal text NOT NULL,
  agent text,
  door text NOT NULL,
  parent bytea,
  started_us bigint NOT NULL,
  last_us bigint NOT NULL,
  ended_us bigint,
  calls bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  refused bigint NOT NULL DEFAULT 0,
  unknown bigint NOT NULL DEFAULT 0,
  latency_us bigint NOT NULL DEFAULT 0,
  characters_in bigint NOT NULL DEFAULT 0,
  characters_out bigint NOT NULL DEFAULT 0,
  cost_micros bigint NOT NULL DEFAULT 0
);
CREATE INDEX sessions_resumable ON sessions (project, principal, agent, door) WHERE ended_us IS NULL;
CREATE INDEX sessions_parent ON sessions (parent) WHERE parent IS NOT NULL;
CREATE INDEX sessions_principal ON sessions (principal, ended_us);

CREATE TABLE approvals (
  id bytea PRIMARY KEY,
  call bytea NOT NULL,
  step bigint NOT NULL,
  session bytea NOT NULL,
  parent bytea,
  project text NOT NULL,
  principal text NOT NULL,
  agent text,
  name text NOT NULL,
  request_key bytea NOT NULL,
  state text NOT NULL,
  process bytea NOT NULL,
  created_us bigint NOT NULL,
  deadline_us bigint,
  ended_us bigint,
  delivered smallint NOT NULL,
  webhook_messages_sent smallint NOT NULL,
  attempts bigint NOT NULL,
  decision text,
  message text,
  supersedes bytea,
  asked text NOT NULL,
  due_us bigint,
  unsent smallint NOT NULL,
  args_unmasked smallint NOT NULL DEFAULT 1,
  modified text,
  arguments text NOT NULL
);
CREATE INDEX approvals_state ON approvals (state, id);
CREATE INDEX approvals_state_project ON approvals (state, project, id);
CREATE INDEX approvals_project ON approvals (project, id);
CREATE INDEX approvals_session ON approvals (session, id);
CREATE INDEX approvals_call ON approvals (call, step);
CREATE INDEX approvals_due ON approvals (state, due_us) WHERE due_us IS NOT NULL;
CREATE INDEX approvals_ready ON approvals (process, due_us, id)
  WHERE state IN ('SCHEDULED_FOR_EXECUTION', 'APPROVED_READY');
CREATE INDEX approvals_request_key ON approvals (request_key) WHERE delivered = 0;
CREATE INDEX approvals_waiting ON approvals (principal, project, agent, state)
  WHERE state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY');
CREATE INDEX approvals_unsent ON approvals (project, id) WHERE unsent = 1;
CREATE INDEX approvals_ended ON approvals (args_unmasked, ended_us) WHERE ended_us IS NOT NULL;

CREATE TABLE grants (
  id bytea PRIMARY KEY,
  project text NOT NULL,
  principal text NOT NULL,
  agent_path text NOT NULL,
  provider text NOT NULL,
  tool text NOT NULL,
  name text NOT NULL,
  fingerprint bytea NOT NULL,
  policy bytea NOT NULL,
  rules text NOT NULL,
  session bytea,
  given_by text NOT NULL,
  approval bytea,
  created_us bigint NOT NULL,
  until_us bigint,
  revoked_us bigint,
  revoked_by text
);
CREATE INDEX grants_valid ON grants (project, principal, agent_path, provider, tool) WHERE revoked_us IS NULL;
CREATE INDEX grants_principal ON grants (principal) WHERE revoked_us IS NULL;
CREATE INDEX grants_giver ON grants (given_by) WHERE revoked_us IS NULL;

-- Credentials; of the secret there is only a digest.
CREATE TABLE keys (
  id bytea PRIMARY KEY,
  name text NOT NULL,
  secret bytea NOT NULL,
  role text NOT NULL,
  projects text,
  agent text,
  tools text,
  created_us bigint NOT NULL,
  expires_us bigint,
  revoked_us bigint,
  revocation_applied smallint NOT NULL DEFAULT 0
);
CREATE INDEX keys_name ON keys (name);
CREATE INDEX keys_expiring ON keys (expires_us) WHERE revocation_applied = 0 AND revoked_us IS NULL;

-- Counts the transactions that changed approvals, grants or keys, so that other processes notice with one read.
CREATE TABLE changes (
  one smallint PRIMARY KEY CHECK (one = 1),
  n bigint NOT NULL
);
INSERT INTO changes VALUES (1, 0);
