-- The ledger: append-only, each entry's hash covers the entry and the hash before it.
-- A call has one entry (whole) or several (intent, then outcome or recovered); the newest says its state.
CREATE TABLE ledger (
  seq INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  call BLOB NOT NULL,
  node BLOB NOT NULL,
  at INTEGER NOT NULL,
  project TEXT NOT NULL,
  session BLOB NOT NULL,
  principal TEXT NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  body TEXT NOT NULL,
  hash BLOB NOT NULL
) STRICT;
CREATE INDEX ledger_call ON ledger (call);
CREATE INDEX ledger_session ON ledger (session);
CREATE INDEX ledger_at ON ledger (at);

-- The newest entry, repeated: without it, cutting entries off the end would leave a valid chain.
CREATE TABLE ledger_head (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  seq INTEGER NOT NULL,
  hash BLOB NOT NULL
) STRICT;
INSERT INTO ledger_head VALUES (1, 0, zeroblob(32));

-- Intents without an outcome, so that recovery looks at these alone.
CREATE TABLE open_calls (
  call BLOB PRIMARY KEY,
  node BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
  call BLOB PRIMARY KEY,
  project TEXT NOT NULL,
  principal TEXT NOT NULL,
  key TEXT NOT NULL,
  at INTEGER NOT NULL,
  UNIQUE (project, principal, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_at ON idempotency (at);

-- Results are kept for a while only, so they are not part of the ledger.
CREATE TABLE results (
  call BLOB PRIMARY KEY,
  at INTEGER NOT NULL,
  result TEXT NOT NULL
) STRICT;
CREATE INDEX results_at ON results (at);

CREATE TABLE sessions (
  seq INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
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
CREATE INDEX sessions_standing ON sessions (project, principal, agent, door) WHERE ended_us IS NULL;
CREATE INDEX sessions_parent ON sessions (parent) WHERE parent IS NOT NULL;
