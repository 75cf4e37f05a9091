-- The ledger becomes one hash chain per node, and rows are found by their ids (UUIDv7, so they sort by time) instead of by a
-- number of the database. All entries from before are kept as the frozen segment, under a node of 16 zero bytes: with their
-- old hashes, which do not cover `node` and `step`. The chain of this database's node goes on from the last of them.

-- `step` numbers the entries of one call, whatever node wrote them: the first is 0, and no two entries are the same step.
CREATE TABLE ledger_by_node (
  node BLOB NOT NULL,
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  call BLOB NOT NULL,
  step INTEGER NOT NULL,
  -- The process that wrote it; several processes append to the chain of one node.
  process BLOB NOT NULL,
  at INTEGER NOT NULL,
  project TEXT NOT NULL,
  session BLOB NOT NULL,
  principal TEXT NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  body TEXT NOT NULL,
  hash BLOB NOT NULL,
  PRIMARY KEY (node, seq),
  UNIQUE (call, step)
) STRICT;
-- In the order of `seq` and with `step` counted in an index, so that nothing is sorted: the ledger may be larger than memory.
INSERT INTO ledger_by_node
  SELECT zeroblob(16), seq, kind, call, (SELECT count(*) FROM ledger e WHERE e.call = l.call AND e.seq < l.seq), node, at,
    project, session, principal, name, state, body, hash FROM ledger l ORDER BY l.seq;
DROP TABLE ledger;
ALTER TABLE ledger_by_node RENAME TO ledger;
CREATE INDEX ledger_session ON ledger (session, call) WHERE step = 0;

-- The newest entry of each chain, repeated: without it, cutting entries off the end would leave a valid chain. `genesis` is
-- what the first entry is chained to.
CREATE TABLE ledger_heads (
  node BLOB PRIMARY KEY NOT NULL,
  seq INTEGER NOT NULL,
  hash BLOB NOT NULL,
  genesis BLOB NOT NULL
) STRICT;
INSERT INTO ledger_heads SELECT zeroblob(16), seq, hash, zeroblob(32) FROM ledger_head WHERE seq > 0;
INSERT INTO ledger_heads SELECT randomblob(16), 0, hash, hash FROM ledger_head;
DROP TABLE ledger_head;

ALTER TABLE open_calls RENAME COLUMN node TO process;

CREATE TABLE sessions_by_id (
  id BLOB PRIMARY KEY NOT NULL,
  project TEXT NOT NULL,
  principal TEXT NOT NULL,
  agent TEXT,
  door TEXT NOT NULL,
  parent BLOB,
  started_us INTEGER NOT NULL,
  last_us INTEGER NOT NULL,
  ended_us INTEGER,
  calls INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  refused INTEGER NOT NULL DEFAULT 0,
  unknown INTEGER NOT NULL DEFAULT 0,
  latency_us INTEGER NOT NULL DEFAULT 0,
  characters_in INTEGER NOT NULL DEFAULT 0,
  characters_out INTEGER NOT NULL DEFAULT 0,
  cost_micros INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO sessions_by_id
  SELECT id, project, principal, agent, door, parent, started_us, last_us, ended_us, calls, failed, refused, unknown,
    latency_us, characters_in, characters_out, cost_micros FROM sessions;
DROP TABLE sessions;
ALTER TABLE sessions_by_id RENAME TO sessions;
CREATE INDEX sessions_resumable ON sessions (project, principal, agent, door) WHERE ended_us IS NULL;
CREATE INDEX sessions_parent ON sessions (parent) WHERE parent IS NOT NULL;
-- A name under which calls are on record is given to no other key.
CREATE INDEX sessions_principal ON sessions (principal, ended_us);

-- Calls that wait for a person or for their time, and how they went on. A row changes with its call: every change of `state`
-- appends to the ledger in the same transaction.
CREATE TABLE approvals_by_id (
  id BLOB PRIMARY KEY NOT NULL,
  call BLOB NOT NULL,
  -- The step of the entry that holds the call under this approval; of rows from before, the number of the approval within
  -- its call. The newest approval of a call has the largest, and only this order is used.
  step INTEGER NOT NULL,
  session BLOB NOT NULL,
  parent BLOB,
  project TEXT NOT NULL,
  principal TEXT NOT NULL,
  agent TEXT,
  name TEXT NOT NULL,
  request_key BLOB NOT NULL,
  state TEXT NOT NULL,
  process BLOB NOT NULL,
  created_us INTEGER NOT NULL,
  deadline_us INTEGER,
  ended_us INTEGER,
  -- Whether a caller was given the outcome.
  delivered INTEGER NOT NULL,
  -- How many messages the webhook has taken: 0 none, 1 the request, 2 the decision, 3 all that will be sent.
  webhook_messages_sent INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  decision TEXT,
  message TEXT,
  supersedes BLOB,
  asked TEXT NOT NULL,
  -- When the row is to be looked at: at its deadline while it waits, at once (0) when it was approved.
  due_us INTEGER,
  -- Whether the webhook is to be sent something now.
  unsent INTEGER NOT NULL,
  -- Whether the arguments are as they were sent; some time after the end, secrets in them are masked.
  args_unmasked INTEGER NOT NULL DEFAULT 1,
  -- Last, because they may be long: lists do not read long ones.
  modified TEXT,
  arguments TEXT NOT NULL
) STRICT;
INSERT INTO approvals_by_id
  SELECT id, call, (SELECT count(*) FROM approvals e WHERE e.call = a.call AND e.seq < a.seq), session, parent, project,
    principal, agent, name, sameness, state, node, created_us, deadline_us, ended_us, collected, announced, attempts, decision,
    message, supersedes, asked, due_us, coalesce(unsent, 0), exact, modified, arguments FROM approvals a ORDER BY a.seq;
DROP TABLE approvals;
ALTER TABLE approvals_by_id RENAME TO approvals;
CREATE INDEX approvals_state ON approvals (state, id);
CREATE INDEX approvals_state_project ON approvals (state, project, id);
CREATE INDEX approvals_project ON approvals (project, id);
CREATE INDEX approvals_session ON approvals (session, id);
CREATE INDEX approvals_call ON approvals (call, step);
CREATE INDEX approvals_due ON approvals (state, due_us) WHERE due_us IS NOT NULL;
CREATE INDEX approvals_ready ON approvals (process, due_us, id)
  WHERE state IN ('SCHEDULED_FOR_EXECUTION', 'APPROVED_READY');
CREATE INDEX approvals_request_key ON approvals (request_key) WHERE delivered = 0;
CREATE INDEX approvals_waiting ON approvals (project, principal, agent, state)
  WHERE state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY');
CREATE INDEX approvals_callers ON approvals (principal)
  WHERE state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY');
CREATE INDEX approvals_unsent ON approvals (project, id) WHERE unsent = 1;
CREATE INDEX approvals_ended ON approvals (args_unmasked, ended_us) WHERE ended_us IS NOT NULL;

CREATE TABLE grants_by_id (
  id BLOB PRIMARY KEY NOT NULL,
  project TEXT NOT NULL,
  principal TEXT NOT NULL,
  agent_path TEXT NOT NULL,
  provider TEXT NOT NULL,
  tool TEXT NOT NULL,
  name TEXT NOT NULL,
  fingerprint BLOB NOT NULL,
  policy BLOB NOT NULL,
  rules TEXT NOT NULL,
  session BLOB,
  given_by TEXT NOT NULL,
  approval BLOB,
  created_us INTEGER NOT NULL,
  -- When it ends by itself, with the key of its holder or of its giver.
  until_us INTEGER,
  revoked_us INTEGER,
  revoked_by TEXT
) STRICT;
INSERT INTO grants_by_id
  SELECT id, project, principal, agent_path, provider, tool, name, fingerprint, policy, rules, session, given_by, approval,
    created_us, until_us, revoked_us, revoked_by FROM grants;
DROP TABLE grants;
ALTER TABLE grants_by_id RENAME TO grants;
CREATE INDEX grants_valid ON grants (project, principal, agent_path, provider, tool) WHERE revoked_us IS NULL;
CREATE INDEX grants_principal ON grants (principal) WHERE revoked_us IS NULL;
CREATE INDEX grants_giver ON grants (given_by) WHERE revoked_us IS NULL;

-- Credentials; of the secret there is only a digest.
CREATE TABLE keys_by_id (
  id BLOB PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  secret BLOB NOT NULL,
  role TEXT NOT NULL,
  projects TEXT,
  agent TEXT,
  tools TEXT,
  created_us INTEGER NOT NULL,
  expires_us INTEGER,
  revoked_us INTEGER,
  -- Whether the grants and sessions of the key's name were ended after the key had expired.
  revocation_applied INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO keys_by_id
  SELECT id, name, secret, role, projects, agent, tools, created_us, expires_us, revoked_us, parted FROM keys;
DROP TABLE keys;
ALTER TABLE keys_by_id RENAME TO keys;
CREATE INDEX keys_name ON keys (name);
CREATE INDEX keys_expiring ON keys (expires_us) WHERE revocation_applied = 0 AND revoked_us IS NULL;
