-- A database as Gantry 0.x left it before the ledger had a chain per node: sqlite3's .dump of schema 3 with eight calls,
-- their approvals, a session, a grant and a key. One call was running when its process ended.
PRAGMA application_id = 0x474E5452;
CREATE TABLE migrations (version INTEGER PRIMARY KEY, checksum BLOB NOT NULL) STRICT;
INSERT INTO migrations VALUES(1,X'c4eb6b0f704a88467db01d3f7c74d4df6cb19f361bd8407de48b571c6dd82be2');
INSERT INTO migrations VALUES(2,X'618b39f7883942713f9e82e619d4505772984475c635141660fb7af96bd5ba9e');
INSERT INTO migrations VALUES(3,X'2589555b5e14952b63080e84ea89ece1eb32551b2d51ef0ab025922a1ae308c2');
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
INSERT INTO ledger VALUES(1,'whole',X'01a1ee612fa27217a34137c40fec6d67',X'01a1ee612f8476db990d6928ea885136',1795000709026669,'default',X'01a1ee612fa27217a34137c3c33197e2','local','github__create_issue','COMPLETED_SUCCESS','{"parent":"call_01010101010101010101010101010101","turn":3,"agent":"researcher","door":"mcp","provider":"github","tool":"create-issue","kind":"mcp","namespace":"github","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","argumentsDigest":"b192017da47f5d35fb73a303a7ba74a8f4648d05176804ae49d9cdaa1d780812","arguments":"{\"title\":\"a \\\"quoted\\\" ü\\u0000\"}","decision":"approved by person","outcome":{"effectState":"done","latencyUs":1500,"charactersIn":20,"charactersOut":300,"costMicros":7,"finishedUs":1795000712026669,"attempts":1,"cached":false}}',X'd3b3ed08272a938d3a86d4c2414a09cbee51c21526c3e828e6e1b7c5ffd8612a');
INSERT INTO ledger VALUES(2,'intent',X'01a1ee612fa27217a34137c67f6ae465',X'01a1ee612f8476db990d6928ea885136',1000000,'default',X'01a1ee612fa27217a34137c3c33197e2','local','github__create_issue','EXECUTING','{"parent":"call_01010101010101010101010101010101","turn":3,"agent":"researcher","door":"mcp","provider":"github","tool":"create-issue","kind":"mcp","namespace":"github","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","argumentsDigest":"b192017da47f5d35fb73a303a7ba74a8f4648d05176804ae49d9cdaa1d780812","arguments":"{\"title\":\"a \\\"quoted\\\" ü\\u0000\"}","decision":"approved by person","idempotency":{"key":"once","arguments":"b192017da47f5d35fb73a303a7ba74a8f4648d05176804ae49d9cdaa1d780812"}}',X'82d4840b2dd1d55e1d3b37d5e8aed79b8ee2ce95869d70935b064511bd03af5b');
INSERT INTO ledger VALUES(3,'whole',X'01a1ee612fa973a8a7c5ea0546504b26',X'01a1ee612f8476db990d6928ea885136',1000000,'default',X'01a1ee612fa27217a34137c3c33197e2','local','github__create_issue','COMPLETED_FAILURE','{"parent":"call_01010101010101010101010101010101","turn":3,"agent":"researcher","door":"mcp","provider":"github","tool":"create-issue","kind":"mcp","namespace":"github","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","argumentsDigest":"b192017da47f5d35fb73a303a7ba74a8f4648d05176804ae49d9cdaa1d780812","arguments":"{\"title\":\"a \\\"quoted\\\" ü\\u0000\"}","decision":"approved by person","outcome":{"code":"EXECUTION_ERROR","message":"it did not work","effectState":"none","latencyUs":1500,"charactersIn":20,"charactersOut":300,"costMicros":7,"finishedUs":1795000712026669,"attempts":1,"cached":false}}',X'103d738354b38aea31eb7501ec1ea892277363a82afbcb5a7fa6f9d08d242cef');
INSERT INTO ledger VALUES(4,'outcome',X'01a1ee612fa27217a34137c67f6ae465',X'01a1ee612f8476db990d6928ea885136',1795000712026669,'default',X'01a1ee612fa27217a34137c3c33197e2','local','github__create_issue','COMPLETED_SUCCESS','{"effectState":"done","latencyUs":1500,"charactersIn":20,"charactersOut":300,"costMicros":7,"finishedUs":1795000712026669,"attempts":1,"cached":false}',X'fe7c04107a5a351b073bfe50372aee10095f74c49a78fa3e821daab45c3a3f45');
INSERT INTO ledger VALUES(5,'held',X'01a1ee612faa7368854b48fdb1083d3a',X'01a1ee612f8476db990d6928ea885136',1000000,'default',X'07070707070707070707070707070707','local','github__create_issue','PENDING_APPROVAL','{"turn":3,"agent":"researcher","door":"mcp","provider":"github","tool":"create-issue","kind":"mcp","namespace":"github","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","argumentsDigest":"b192017da47f5d35fb73a303a7ba74a8f4648d05176804ae49d9cdaa1d780812","arguments":"{\"title\":\"a \\\"quoted\\\" ü\\u0000\"}","decision":"approved by person","approval":"appr_01a1ee612faa7368854b48fe822f40ac"}',X'24df05f8225bed6d5335acdb39c635a75bcc8caf81b6afea6664321919c461b0');
INSERT INTO ledger VALUES(6,'refusal',X'01a1ee612faa7368854b48fdb1083d3a',X'01a1ee612f8476db990d6928ea885136',1795000709026669,'default',X'07070707070707070707070707070707','local','github__create_issue','PENDING_APPROVAL','{"approval":"appr_01a1ee612faa7368854b48fe822f40ac","by":"bot","via":"http","approved":true,"why":"an agent cannot decide","atUs":1795000709026669}',X'76d8cbde53d7852eeeb9e7fbe50d02c774608b3e8ed51172533510e359bfb2fa');
INSERT INTO ledger VALUES(7,'held',X'01a1ee612fb170a2a609fc51bf5e70c5',X'01a1ee612f8476db990d6928ea885136',1000000,'default',X'07070707070707070707070707070707','local','github__create_issue','PENDING_APPROVAL','{"turn":3,"agent":"researcher","door":"mcp","provider":"github","tool":"create-issue","kind":"mcp","namespace":"github","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","argumentsDigest":"b192017da47f5d35fb73a303a7ba74a8f4648d05176804ae49d9cdaa1d780812","arguments":"{\"title\":\"a \\\"quoted\\\" ü\\u0000\"}","decision":"approved by person","approval":"appr_01a1ee612fb170a2a609fc52b4249544"}',X'93ad113ac3e312bc8ba564206909b805cd0ca55148a8fd3aa86b74d1e78fcd1a');
INSERT INTO ledger VALUES(8,'decision',X'01a1ee612fb170a2a609fc51bf5e70c5',X'01a1ee612f8476db990d6928ea885136',1795000711026669,'default',X'07070707070707070707070707070707','local','github__create_issue','SCHEDULED_FOR_EXECUTION','{"approval":"appr_01a1ee612fb170a2a609fc52b4249544","decision":{"verdict":"approved","by":"ann","via":"http","reason":"because","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","scope":"once"},"deadlineUs":1795000718026669}',X'f794fde2dc6e6eb4cd4d26e81ae573aca6de8c8eaa69ef097bcc9ae6d7fecab0');
INSERT INTO ledger VALUES(9,'held',X'01a1ee612fb973a8940f87a53d965415',X'01a1ee612f8476db990d6928ea885136',1000000,'default',X'07070707070707070707070707070707','local','github__create_issue','PENDING_APPROVAL','{"turn":3,"agent":"researcher","door":"mcp","provider":"github","tool":"create-issue","kind":"mcp","namespace":"github","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","argumentsDigest":"b192017da47f5d35fb73a303a7ba74a8f4648d05176804ae49d9cdaa1d780812","arguments":"{\"title\":\"a \\\"quoted\\\" ü\\u0000\"}","decision":"approved by person","approval":"appr_01a1ee612fb973a8940f87a661d00577"}',X'93cbc3a65c353ef15ca431b89b35d60a067eadc60f41159bcf98cb4180bddd16');
INSERT INTO ledger VALUES(10,'decision',X'01a1ee612fb973a8940f87a53d965415',X'01a1ee612f8476db990d6928ea885136',1795000711026669,'default',X'07070707070707070707070707070707','local','github__create_issue','APPROVED_READY','{"approval":"appr_01a1ee612fb973a8940f87a661d00577","decision":{"verdict":"approved","by":"ann","via":"http","reason":"because","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","scope":"once"}}',X'f62a3fe4b42215c92b6f4029315605c6451538bb5f65781c814263f0782fb56a');
INSERT INTO ledger VALUES(11,'intent',X'01a1ee612fb973a8940f87a53d965415',X'01a1ee612f8476db990d6928ea885136',1000000,'default',X'07070707070707070707070707070707','local','github__create_issue','EXECUTING','{"turn":3,"agent":"researcher","door":"mcp","provider":"github","tool":"create-issue","kind":"mcp","namespace":"github","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","argumentsDigest":"b192017da47f5d35fb73a303a7ba74a8f4648d05176804ae49d9cdaa1d780812","arguments":"{\"title\":\"a \\\"quoted\\\" ü\\u0000\"}","decision":"approved by person","approval":"appr_01a1ee612fb973a8940f87a661d00577"}',X'321157b334d80c77dd7ecac1250883d69421f01ccd53afa601193f726eb6fa64');
INSERT INTO ledger VALUES(12,'outcome',X'01a1ee612fb973a8940f87a53d965415',X'01a1ee612f8476db990d6928ea885136',1795000712026669,'default',X'07070707070707070707070707070707','local','github__create_issue','COMPLETED_SUCCESS','{"effectState":"done","latencyUs":1500,"charactersIn":20,"charactersOut":300,"costMicros":7,"finishedUs":1795000712026669,"attempts":1,"cached":false}',X'b3681963e48d990b88bc3b9a172faf6dd31d7759aa462c71e5e3d0abe3e26424');
INSERT INTO ledger VALUES(13,'held',X'01a1ee612fc173f89d946fd04f0e7e16',X'01a1ee612f8476db990d6928ea885136',1000000,'default',X'07070707070707070707070707070707','local','github__create_issue','PENDING_APPROVAL','{"turn":3,"agent":"researcher","door":"mcp","provider":"github","tool":"create-issue","kind":"mcp","namespace":"github","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","argumentsDigest":"b192017da47f5d35fb73a303a7ba74a8f4648d05176804ae49d9cdaa1d780812","arguments":"{\"title\":\"a \\\"quoted\\\" ü\\u0000\"}","decision":"approved by person","approval":"appr_01a1ee612fc173f89d946fd13a427aa3"}',X'7cae38f05fd0bf3d874c7dfeab90cc0184b1637c148a6154d638aa8bb2a7ae42');
INSERT INTO ledger VALUES(14,'decision',X'01a1ee612fc173f89d946fd04f0e7e16',X'01a1ee612f8476db990d6928ea885136',1795000711026669,'default',X'07070707070707070707070707070707','local','github__create_issue','REJECTED_BY_USER','{"approval":"appr_01a1ee612fc173f89d946fd13a427aa3","decision":{"verdict":"denied","by":"ann","via":"http","reason":"because","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","scope":"once"},"outcome":{"code":"REJECTED_BY_USER","message":"ann said no: because","effectState":"none","latencyUs":0,"charactersIn":0,"charactersOut":0,"costMicros":0,"finishedUs":1795000711026669,"cached":false}}',X'b47ccb30b1ec99256451ea2ff1cf97a73a005149efeb10a02f75b62b7e7aeed5');
INSERT INTO ledger VALUES(15,'held',X'01a1ee612fc473a68cede748a3292855',X'01a1ee612f8476db990d6928ea885136',1000000,'default',X'07070707070707070707070707070707','local','github__create_issue','PENDING_APPROVAL','{"turn":3,"agent":"researcher","door":"mcp","provider":"github","tool":"create-issue","kind":"mcp","namespace":"github","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","argumentsDigest":"b192017da47f5d35fb73a303a7ba74a8f4648d05176804ae49d9cdaa1d780812","arguments":"{\"title\":\"a \\\"quoted\\\" ü\\u0000\"}","decision":"approved by person","approval":"appr_01a1ee612fc473a68cede74959d1216d"}',X'4bc496b9042ef9c365043f5c13185a8e4651a0f83e79daf5f0d44f86a9725f3e');
INSERT INTO ledger VALUES(16,'decision',X'01a1ee612fc473a68cede748a3292855',X'01a1ee612f8476db990d6928ea885136',1795000711026669,'default',X'07070707070707070707070707070707','local','github__create_issue','APPROVED_READY','{"approval":"appr_01a1ee612fc473a68cede74959d1216d","decision":{"verdict":"approved","by":"ann","via":"http","reason":"because","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","scope":"once"}}',X'793f8867e588d8335dc67b96b5b6a9f6824db74d5410e132c570c4973eecb634');
INSERT INTO ledger VALUES(17,'held',X'01a1ee612fc473a68cede748a3292855',X'01a1ee612f8476db990d6928ea885136',1000000,'default',X'07070707070707070707070707070707','local','github__create_issue','PENDING_APPROVAL','{"turn":3,"agent":"researcher","door":"mcp","provider":"github","tool":"create-issue","kind":"mcp","namespace":"github","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","argumentsDigest":"b192017da47f5d35fb73a303a7ba74a8f4648d05176804ae49d9cdaa1d780812","arguments":"{\"title\":\"a \\\"quoted\\\" ü\\u0000\"}","decision":"approved by person","approval":"appr_01a1ee612fc873a6ace5794aaf21c5c1","supersedes":"appr_01a1ee612fc473a68cede74959d1216d"}',X'98ce08fe426910b1f93f14e783f6079478ffb15c8577de3b3aab0eff59759eac');
INSERT INTO ledger VALUES(18,'held',X'01a1ee612fc973de890af7a8ebb36477',X'01a1ee612f8476db990d6928ea885136',1000000,'default',X'07070707070707070707070707070707','local','github__create_issue','PENDING_APPROVAL','{"turn":3,"agent":"researcher","door":"mcp","provider":"github","tool":"create-issue","kind":"mcp","namespace":"github","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","argumentsDigest":"b192017da47f5d35fb73a303a7ba74a8f4648d05176804ae49d9cdaa1d780812","arguments":"{\"title\":\"a \\\"quoted\\\" ü\\u0000\"}","decision":"approved by person","approval":"appr_01a1ee612fc973de890af7a917cab0f6"}',X'8ffbbee8aa40a30055c261451e8bdba912f7b78d2de256a4630c6f4954c1ba90');
INSERT INTO ledger VALUES(19,'decision',X'01a1ee612fc973de890af7a8ebb36477',X'01a1ee612f8476db990d6928ea885136',1795000711026669,'default',X'07070707070707070707070707070707','local','github__create_issue','APPROVED_READY','{"approval":"appr_01a1ee612fc973de890af7a917cab0f6","decision":{"verdict":"approved","by":"ann","via":"http","reason":"because","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","scope":"once"}}',X'ef71d441e8b84670a5a516429f486e2ac4ecbf465ef9d3f38e7b3c27837b79a2');
INSERT INTO ledger VALUES(20,'intent',X'01a1ee612fc973de890af7a8ebb36477',X'01a1ee612f8476db990d6928ea885136',1000000,'default',X'07070707070707070707070707070707','local','github__create_issue','EXECUTING','{"turn":3,"agent":"researcher","door":"mcp","provider":"github","tool":"create-issue","kind":"mcp","namespace":"github","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","argumentsDigest":"b192017da47f5d35fb73a303a7ba74a8f4648d05176804ae49d9cdaa1d780812","arguments":"{\"title\":\"a \\\"quoted\\\" ü\\u0000\"}","decision":"approved by person","approval":"appr_01a1ee612fc973de890af7a917cab0f6"}',X'd5fa3ffc0de71b6eb31ae27111ba955cbc17543654c796ba7799c239fc38591b');
CREATE TABLE ledger_head (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  seq INTEGER NOT NULL,
  hash BLOB NOT NULL
) STRICT;
INSERT INTO ledger_head VALUES(1,20,X'd5fa3ffc0de71b6eb31ae27111ba955cbc17543654c796ba7799c239fc38591b');
CREATE TABLE open_calls (
  call BLOB PRIMARY KEY,
  node BLOB NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO open_calls VALUES(X'01a1ee612fc973de890af7a8ebb36477',X'01a1ee612f8476db990d6928ea885136');
CREATE TABLE idempotency (
  call BLOB PRIMARY KEY,
  project TEXT NOT NULL,
  principal TEXT NOT NULL,
  key TEXT NOT NULL,
  at INTEGER NOT NULL,
  UNIQUE (project, principal, key)
) STRICT, WITHOUT ROWID;
INSERT INTO idempotency VALUES(X'01a1ee612fa27217a34137c67f6ae465','default','local','once',1795000709030284);
CREATE TABLE results (
  call BLOB PRIMARY KEY,
  at INTEGER NOT NULL,
  result TEXT NOT NULL
) STRICT;
INSERT INTO results VALUES(X'01a1ee612fa27217a34137c67f6ae465',1795000709034322,'{"ok":true}');
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
INSERT INTO sessions VALUES(1,X'01a1ee612fa27217a34137c3c33197e2','default','local','researcher','mcp',NULL,1795000709026669,1795000712026669,NULL,3,1,0,0,4500,60,900,21);
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
, unsent INTEGER AS (CASE announced
    WHEN 0 THEN iif(state = 'PENDING_APPROVAL', 1, NULL)
    WHEN 1 THEN iif(state <> 'PENDING_APPROVAL', 1, NULL)
    WHEN 2 THEN iif(ended_us IS NOT NULL, 1, NULL)
  END) VIRTUAL) STRICT;
INSERT INTO approvals VALUES(1,X'01a1ee612faa7368854b48fe822f40ac',X'01a1ee612faa7368854b48fdb1083d3a',X'07070707070707070707070707070707',NULL,'default','local','researcher','github__create_issue',X'b11fb4233f1451963e7c42f90fa8ebbd4658db228172f50a08af4862f2e8ff9d','PENDING_APPROVAL',X'01a1ee612f8476db990d6928ea885136',1795000710026669,1795001310026669,NULL,0,3,0,1,NULL,NULL,NULL,'{"role":"agent","door":"mcp","agentPath":["lead","researcher"],"provider":"github","tool":"create-issue","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","policy":"823412d1eacb67956220e532959f0104603057c88704863ca38e7cd188fda812","reason":"it writes","rules":["writes"],"approvers":[["ann"]],"estimatedCost":3,"delayMs":0,"autoReject":true,"idempotencyKey":null,"timeoutMs":5000,"priority":"high","turn":3,"source":null,"sent":null,"ownSession":true}',NULL,'{"title":"a \"quoted\" ü","api_key":"hunter2"}');
INSERT INTO approvals VALUES(2,X'01a1ee612fb170a2a609fc52b4249544',X'01a1ee612fb170a2a609fc51bf5e70c5',X'07070707070707070707070707070707',NULL,'default','local','researcher','github__create_issue',X'3a1c614ef03b9e44e52a29b7953b63309c70a08b26d3be5c44cefc8b7c5fd451','SCHEDULED_FOR_EXECUTION',X'01a1ee612f8476db990d6928ea885136',1795000710026669,1795000718026669,NULL,0,3,0,1,NULL,NULL,'{"verdict":"approved","by":"ann","via":"http","atUs":1795000711026669,"reason":"because","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","scope":"once","grant":null}','{"role":"agent","door":"mcp","agentPath":["lead","researcher"],"provider":"github","tool":"create-issue","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","policy":"823412d1eacb67956220e532959f0104603057c88704863ca38e7cd188fda812","reason":"it writes","rules":["writes"],"approvers":[["ann"]],"estimatedCost":3,"delayMs":0,"autoReject":true,"idempotencyKey":null,"timeoutMs":5000,"priority":"high","turn":3,"source":null,"sent":null,"ownSession":true}',NULL,'{"title":"a \"quoted\" ü","api_key":"hunter2"}');
INSERT INTO approvals VALUES(3,X'01a1ee612fb973a8940f87a661d00577',X'01a1ee612fb973a8940f87a53d965415',X'07070707070707070707070707070707',NULL,'default','local','researcher','github__create_issue',X'0d556ad3c6eb00cb288f4829eb3fe9f4aa9c8f2e3f750e7a00043ef96c68be21','COMPLETED_SUCCESS',X'01a1ee612f8476db990d6928ea885136',1795000710026669,1795001310026669,1795000712026669,0,3,1,1,NULL,NULL,'{"verdict":"approved","by":"ann","via":"http","atUs":1795000711026669,"reason":"because","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","scope":"once","grant":null}','{"role":"agent","door":"mcp","agentPath":["lead","researcher"],"provider":"github","tool":"create-issue","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","policy":"823412d1eacb67956220e532959f0104603057c88704863ca38e7cd188fda812","reason":"it writes","rules":["writes"],"approvers":[["ann"]],"estimatedCost":3,"delayMs":0,"autoReject":true,"idempotencyKey":null,"timeoutMs":5000,"priority":"high","turn":3,"source":null,"sent":null,"ownSession":true}',NULL,'{"title":"a \"quoted\" ü","api_key":"hunter2"}');
INSERT INTO approvals VALUES(4,X'01a1ee612fc173f89d946fd13a427aa3',X'01a1ee612fc173f89d946fd04f0e7e16',X'07070707070707070707070707070707',NULL,'default','local','researcher','github__create_issue',X'b6775be8cd8e0ef5ef58926b5fbaaf3ed16ccd98154618eed498a2196bc571f3','REJECTED_BY_USER',X'01a1ee612f8476db990d6928ea885136',1795000710026669,1795001310026669,1795000711026669,0,3,0,1,NULL,NULL,'{"verdict":"denied","by":"ann","via":"http","atUs":1795000711026669,"reason":"because","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","scope":"once","grant":null}','{"role":"agent","door":"mcp","agentPath":["lead","researcher"],"provider":"github","tool":"create-issue","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","policy":"823412d1eacb67956220e532959f0104603057c88704863ca38e7cd188fda812","reason":"it writes","rules":["writes"],"approvers":[["ann"]],"estimatedCost":3,"delayMs":0,"autoReject":true,"idempotencyKey":null,"timeoutMs":5000,"priority":"high","turn":3,"source":null,"sent":null,"ownSession":true}',NULL,'{"title":"a \"quoted\" ü","api_key":"hunter2"}');
INSERT INTO approvals VALUES(5,X'01a1ee612fc473a68cede74959d1216d',X'01a1ee612fc473a68cede748a3292855',X'07070707070707070707070707070707',NULL,'default','local','researcher','github__create_issue',X'4e25d4ed92dded6d7e701049923330dd53fe1eb615e11c9d378dcca66e4b4624','CANCELLED_BY_SYSTEM',X'01a1ee612f8476db990d6928ea885136',1795000710026669,1795001310026669,1795000710026669,1,3,0,1,NULL,'what was approved has changed; appr_01a1ee612fc873a6ace5794aaf21c5c1 takes its place','{"verdict":"approved","by":"ann","via":"http","atUs":1795000711026669,"reason":"because","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","scope":"once","grant":null}','{"role":"agent","door":"mcp","agentPath":["lead","researcher"],"provider":"github","tool":"create-issue","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","policy":"823412d1eacb67956220e532959f0104603057c88704863ca38e7cd188fda812","reason":"it writes","rules":["writes"],"approvers":[["ann"]],"estimatedCost":3,"delayMs":0,"autoReject":true,"idempotencyKey":null,"timeoutMs":5000,"priority":"high","turn":3,"source":null,"sent":null,"ownSession":true}',NULL,'{"title":"a \"quoted\" ü","api_key":"hunter2"}');
INSERT INTO approvals VALUES(6,X'01a1ee612fc873a6ace5794aaf21c5c1',X'01a1ee612fc473a68cede748a3292855',X'07070707070707070707070707070707',NULL,'default','local','researcher','github__create_issue',X'b4c9e14061c2fd453b36700e3b0da008db2189c711ac629f0f583089164e267d','PENDING_APPROVAL',X'01a1ee612f8476db990d6928ea885136',1795000710026669,1795001310026669,NULL,0,3,0,1,X'01a1ee612fc473a68cede74959d1216d',NULL,NULL,'{"role":"agent","door":"mcp","agentPath":["lead","researcher"],"provider":"github","tool":"create-issue","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","policy":"823412d1eacb67956220e532959f0104603057c88704863ca38e7cd188fda812","reason":"it writes","rules":["writes"],"approvers":[["ann"]],"estimatedCost":3,"delayMs":0,"autoReject":true,"idempotencyKey":null,"timeoutMs":5000,"priority":"high","turn":3,"source":null,"sent":null,"ownSession":true}',NULL,'{"title":"a \"quoted\" ü","api_key":"hunter2"}');
INSERT INTO approvals VALUES(7,X'01a1ee612fc973de890af7a917cab0f6',X'01a1ee612fc973de890af7a8ebb36477',X'07070707070707070707070707070707',NULL,'default','local','researcher','github__create_issue',X'4f71c12278c30bd7ccb57b0a110c992bf55d409f07b78efc010bcb84a40791df','EXECUTING',X'01a1ee612f8476db990d6928ea885136',1795000710026669,1795001310026669,NULL,0,3,1,1,NULL,NULL,'{"verdict":"approved","by":"ann","via":"http","atUs":1795000711026669,"reason":"because","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","scope":"once","grant":null}','{"role":"agent","door":"mcp","agentPath":["lead","researcher"],"provider":"github","tool":"create-issue","effect":"write","fingerprint":"4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6","binding":"80f70afeef3caa57646fd20afb95be9c3f2c03d38e091906de31838813dcc22e","policy":"823412d1eacb67956220e532959f0104603057c88704863ca38e7cd188fda812","reason":"it writes","rules":["writes"],"approvers":[["ann"]],"estimatedCost":3,"delayMs":0,"autoReject":true,"idempotencyKey":null,"timeoutMs":5000,"priority":"high","turn":3,"source":null,"sent":null,"ownSession":true}',NULL,'{"title":"a \"quoted\" ü","api_key":"hunter2"}');
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
INSERT INTO grants VALUES(1,X'01a1ee612fd572f986fe324fca85d7b2','default','local','','github','create-issue','github__create_issue',X'4c4ed1afbfdaa1e4c3bf7bbb82d730cecb7e384da91eea4f3cc093fd545524d6',X'823412d1eacb67956220e532959f0104603057c88704863ca38e7cd188fda812','["writes"]',NULL,'ann',NULL,1795000709026669,NULL,NULL,NULL);
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
INSERT INTO keys VALUES(1,X'01a1ee612fcd74c68a7024a4d552aa43','ann',X'043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89','approver','["default"]',NULL,NULL,1795000709026669,NULL,NULL,0);
CREATE TABLE changes (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  n INTEGER NOT NULL
) STRICT;
INSERT INTO changes VALUES(1,17);
CREATE INDEX ledger_call ON ledger (call);
CREATE INDEX ledger_session ON ledger (session);
CREATE INDEX ledger_at ON ledger (at);
CREATE INDEX idempotency_at ON idempotency (at);
CREATE INDEX results_at ON results (at);
CREATE INDEX sessions_standing ON sessions (project, principal, agent, door) WHERE ended_us IS NULL;
CREATE INDEX sessions_parent ON sessions (parent) WHERE parent IS NOT NULL;
CREATE INDEX approvals_state ON approvals (state);
CREATE INDEX approvals_state_project ON approvals (state, project);
CREATE INDEX approvals_project ON approvals (project);
CREATE INDEX approvals_session ON approvals (session);
CREATE INDEX approvals_call ON approvals (call);
CREATE INDEX approvals_due ON approvals (due_us) WHERE due_us IS NOT NULL;
CREATE INDEX approvals_ready ON approvals (node, due_us)
  WHERE state IN ('SCHEDULED_FOR_EXECUTION', 'APPROVED_READY');
CREATE INDEX approvals_same ON approvals (sameness) WHERE collected = 0;
CREATE INDEX approvals_waiting ON approvals (project, principal, agent, state)
  WHERE state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY');
CREATE INDEX approvals_callers ON approvals (principal)
  WHERE state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY');
CREATE INDEX approvals_ended ON approvals (exact, ended_us) WHERE ended_us IS NOT NULL;
CREATE INDEX grants_standing ON grants (project, principal, agent_path, provider, tool) WHERE revoked_us IS NULL;
CREATE INDEX grants_principal ON grants (principal) WHERE revoked_us IS NULL;
CREATE INDEX grants_giver ON grants (given_by) WHERE revoked_us IS NULL;
CREATE INDEX keys_name ON keys (name);
CREATE INDEX keys_lapsing ON keys (expires_us) WHERE parted = 0 AND revoked_us IS NULL;
CREATE INDEX sessions_principal ON sessions (principal, ended_us);
CREATE INDEX approvals_unsent ON approvals (project) WHERE unsent IS NOT NULL;
