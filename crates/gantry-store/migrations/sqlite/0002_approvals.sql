-- Calls that wait for a person or for their time, and what became of them. A row moves with its call: whatever
-- changes its state appends to the ledger in the same transaction.
CREATE TABLE approvals (
  seq INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  call BLOB NOT NULL,
  session BLOB NOT NULL,
  parent BLOB,
  project TEXT NOT NULL,
  principal TEXT NOT NULL,
  agent TEXT,
  name TEXT NOT NULL,
  sameness BLOB NOT NULL,
  state TEXT NOT NULL,
  node BLOB NOT NULL,
  created_us INTEGER NOT NULL,
  deadline_us INTEGER,
  ended_us INTEGER,
  collected INTEGER NOT NULL,
  announced INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  -- When something has to be done about it. What was approved, or is scheduled for no time at all, is due at once.
  due_us INTEGER AS (CASE state
    WHEN 'PENDING_APPROVAL' THEN deadline_us
    WHEN 'SCHEDULED_FOR_EXECUTION' THEN coalesce(deadline_us, 0)
    WHEN 'APPROVED_READY' THEN 0
  END) VIRTUAL,
  -- Whether the arguments are still as they were sent; some time after the end, secrets in them are masked.
  exact INTEGER NOT NULL DEFAULT 1,
  supersedes BLOB,
  message TEXT,
  decision TEXT,
  asked TEXT NOT NULL,
  -- Last and by themselves, because they may be long: lists leave them where they are.
  modified TEXT,
  arguments TEXT NOT NULL
) STRICT;
-- Lists come newest first, and every index ends with `seq` by itself.
CREATE INDEX approvals_state ON approvals (state);
CREATE INDEX approvals_state_project ON approvals (state, project);
CREATE INDEX approvals_project ON approvals (project);
CREATE INDEX approvals_session ON approvals (session);
CREATE INDEX approvals_call ON approvals (call);
CREATE INDEX approvals_due ON approvals (due_us) WHERE due_us IS NOT NULL;
-- What each process is to run: however much others have, it does not walk over it.
CREATE INDEX approvals_ready ON approvals (node, due_us)
  WHERE state IN ('SCHEDULED_FOR_EXECUTION', 'APPROVED_READY');
CREATE INDEX approvals_same ON approvals (sameness) WHERE collected = 0;
CREATE INDEX approvals_waiting ON approvals (project, principal, agent, state)
  WHERE state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY');
-- Whose calls wait, so that those of callers whose keys have ended are found.
CREATE INDEX approvals_callers ON approvals (principal)
  WHERE state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY');
CREATE INDEX approvals_unannounced ON approvals (seq) WHERE announced = 0 AND state = 'PENDING_APPROVAL';
CREATE INDEX approvals_ended ON approvals (exact, ended_us) WHERE ended_us IS NOT NULL;

-- A yes that holds for more than one call.
CREATE TABLE grants (
  seq INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
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
  -- When it ends by itself, with the key of whoever has it or gave it.
  until_us INTEGER,
  revoked_us INTEGER,
  revoked_by TEXT
) STRICT;
CREATE INDEX grants_standing ON grants (project, principal, agent_path, provider, tool) WHERE revoked_us IS NULL;
CREATE INDEX grants_principal ON grants (principal) WHERE revoked_us IS NULL;
CREATE INDEX grants_giver ON grants (given_by) WHERE revoked_us IS NULL;

-- Credentials; of the secret there is only a digest.
CREATE TABLE keys (
  seq INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  name TEXT NOT NULL,
  secret BLOB NOT NULL,
  role TEXT NOT NULL,
  projects TEXT,
  agent TEXT,
  tools TEXT,
  created_us INTEGER NOT NULL,
  expires_us INTEGER,
  revoked_us INTEGER,
  -- Whether what the key's name stood for was ended after the key had expired.
  parted INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX keys_name ON keys (name);
CREATE INDEX keys_lapsing ON keys (expires_us) WHERE parted = 0 AND revoked_us IS NULL;
-- Who has ever called: a name under which calls are on record is given to no other key.
CREATE INDEX sessions_principal ON sessions (principal, ended_us);

-- Counts the transactions that changed one of the tables above, so that other processes can tell with one look.
CREATE TABLE changes (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  n INTEGER NOT NULL
) STRICT;
INSERT INTO changes VALUES (1, 0);
