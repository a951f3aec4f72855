-- The tables of jobpoll, version 1, for SQLite.
--
-- sqlstore.Open runs this by itself. To run it by hand or from a migration tool
-- of your own, put another prefix in the place of jobpoll_ if Config.Prefix has
-- one, and set Config.Unmanaged.

CREATE TABLE jobpoll_schema (
    version    INTEGER NOT NULL PRIMARY KEY, -- of each of these files that was run
    applied_at INTEGER NOT NULL              -- Unix seconds
);

-- One row is one jobpoll.Record. Times are microseconds since 1970, in UTC;
-- datetime(updated_at / 1000000, 'unixepoch') reads one, and CAST(data AS TEXT)
-- is JSON.
CREATE TABLE jobpoll_records (
    kind       INTEGER NOT NULL, -- 1 job, 2 notice, 3 submission, 4 profile, 5 budget
    id         TEXT    NOT NULL, -- of more than 512 bytes: its beginning and its SHA-256
    full_id    TEXT,             -- and here all of it
    route      TEXT    NOT NULL,
    rev        INTEGER NOT NULL,
    updated_at INTEGER,          -- NULL: not told
    expires_at INTEGER,          -- NULL: never
    data       BLOB    NOT NULL,
    PRIMARY KEY (kind, id)
);

CREATE INDEX jobpoll_records_expiry ON jobpoll_records (expires_at) WHERE expires_at IS NOT NULL;

-- Who may work on the records: one row for the lease of the store.
CREATE TABLE jobpoll_leases (
    name       TEXT    NOT NULL PRIMARY KEY,
    owner      TEXT    NOT NULL,
    fence      INTEGER NOT NULL, -- grows with each new owner
    expires_at INTEGER NOT NULL  -- microseconds since 1970
);

INSERT INTO jobpoll_schema (version, applied_at) VALUES (1, CAST(strftime('%s', 'now') AS INTEGER));
