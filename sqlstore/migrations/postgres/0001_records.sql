-- The tables of jobpoll, version 1, for PostgreSQL.
--
-- sqlstore.Open runs this by itself. To run it by hand or from a migration tool
-- of your own, put another prefix in the place of jobpoll_ if Config.Prefix has
-- one, and set Config.Unmanaged.

CREATE TABLE jobpoll_schema (
    version    BIGINT NOT NULL PRIMARY KEY, -- of each of these files that was run
    applied_at BIGINT NOT NULL              -- Unix seconds
);

-- One row is one jobpoll.Record. Times are microseconds since 1970, in UTC;
-- to_timestamp(updated_at / 1e6) reads one, and convert_from(data, 'UTF8') is
-- JSON. Its bytes come back as they were written, which jsonb would not do.
-- A row is written anew several times: the fill factor leaves it room on its page.
CREATE TABLE jobpoll_records (
    kind       SMALLINT NOT NULL,         -- 1 job, 2 notice, 3 submission, 4 profile, 5 budget
    id         TEXT COLLATE "C" NOT NULL, -- of more than 512 bytes: its beginning and its SHA-256
    full_id    TEXT,                      -- and here all of it
    route      TEXT   NOT NULL,
    rev        BIGINT NOT NULL,
    updated_at BIGINT,                    -- NULL: not told
    expires_at BIGINT,                    -- NULL: never
    data       BYTEA  NOT NULL,
    PRIMARY KEY (kind, id)
) WITH (fillfactor = 80);

CREATE INDEX jobpoll_records_expiry ON jobpoll_records (expires_at) WHERE expires_at IS NOT NULL;

-- Who may work on the records: one row for the lease of the store.
CREATE TABLE jobpoll_leases (
    name       TEXT   NOT NULL PRIMARY KEY,
    owner      TEXT   NOT NULL,
    fence      BIGINT NOT NULL, -- grows with each new owner
    expires_at BIGINT NOT NULL  -- microseconds since 1970
);

INSERT INTO jobpoll_schema (version, applied_at) VALUES (1, extract(epoch FROM now())::bigint);
