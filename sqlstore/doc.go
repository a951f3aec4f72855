// Package sqlstore keeps what a Poller must not lose in a SQL database, through
// database/sql: one code for SQLite and PostgreSQL. The driver is yours; tried are
// modernc.org/sqlite and github.com/jackc/pgx/v5/stdlib.
//
//	db, err := sql.Open("sqlite", "file:jobs.db?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
//	…
//	store, err := sqlstore.Open(ctx, sqlstore.Config{DB: db})
//	…
//	p, err := jobpoll.New(jobpoll.Config{Store: store, …})
//
// A Store passes polltest.TestStore with both.
//
// # SQLite
//
// Give each connection a busy_timeout, of some seconds: without one a write that
// finds the database locked by another process fails at once (ErrBusy) and is
// tried again later. Set journal_mode to WAL, so that readers and the writer do not
// lock each other out. Leave synchronous at FULL, its default: with NORMAL a power
// cut, though no crash of the process, may undo the last writes, a bought job's id
// among them. The database must be on a disk of the machine; SQLite does not work
// over network file systems. A database in memory is one for each connection, unless
// DB.SetMaxOpenConns(1) says that there is but one.
//
// # PostgreSQL
//
// Statements are prepared; behind a pooler that gives a connection to others
// between transactions, set what your driver has for that. The isolation level may
// be any; read committed is enough.
//
// # Tables
//
// There are three, named after Config.Prefix: jobpoll_records, jobpoll_leases and
// jobpoll_schema. Open makes and migrates them by the files in the directory
// migrations, each in one transaction; several processes may do so at once. Where
// the program may not change tables, set Config.Unmanaged and run what Migrations
// lists with a tool of your own. A program that is older than its tables is refused
// (ErrNewSchema): bring all programs up to date before the first that migrates
// further, or give the new one another prefix.
//
// Records end as the Poller says, those of jobs 30 days after their outcome was
// told (jobpoll.Config.Retention). Put deletes what has ended, in batches; so does
// Sweep.
//
// # One owner
//
// The lease ends on the database's clock, the only one that all processes share; so
// no difference between the clocks of machines makes two owners. Each batch of a
// Poller carries the fence of its lease, which is compared in the transaction that
// writes: what an owner that was replaced writes late is rolled back.
//
// # Together with your own tables
//
// Enlist writes the intent to submit a job in a transaction of your own, so that an
// order and the job for it are on record together or not at all:
//
//	intent, err := jobpoll.Intent(jobpoll.Job{Route: "fal", ClientKey: order.ID}, time.Now())
//	…
//	err = store.Enlist(ctx, tx, intent)
//	…
//	err = tx.Commit()
//	…
//	job, err := p.Submit(ctx, jobpoll.Submission{Job: jobpoll.Job{Route: "fal", ClientKey: order.ID}, Send: send})
//
// If the process dies between Commit and Submit, OnStop is told of it at the next
// start, with ReasonNotSent.
package sqlstore
