-- The spine of one node. `seq` numbers the rows of an origin (<node>.<boot>) from 1. Of the rows with one key one counts;
-- the others are superseded, kept and never counted. Amounts are decimals of 12 places, as text.
CREATE TABLE spine (
    origin      TEXT    NOT NULL,
    seq         INTEGER NOT NULL CHECK (seq > 0),
    key         TEXT    NOT NULL,
    "window"    INTEGER NOT NULL,
    from_window INTEGER NOT NULL,
    elapsed     INTEGER NOT NULL,
    rate        TEXT    NOT NULL,
    amount      TEXT    NOT NULL,
    phase       TEXT    NOT NULL,
    genesis_pegged INTEGER NOT NULL,
    epoch       INTEGER,
    issuer      TEXT,
    superseded  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (origin, seq)
) STRICT;

CREATE UNIQUE INDEX spine_key ON spine (key) WHERE superseded = 0;

-- The highest epoch that this node promised its support to.
CREATE TABLE promised (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL
) STRICT;

-- How often the disk was asked, after a refusal, whether it takes writes again.
CREATE TABLE asked (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    times INTEGER NOT NULL
) STRICT;
