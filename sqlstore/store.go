package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jobpoll/jobpoll"
)

// Config says where a Store keeps its records. Only DB is needed.
type Config struct {
	// DB is the database, opened with the driver of your choice. It stays yours:
	// Store.Close does not close it. The package's documentation says how to open
	// SQLite.
	DB *sql.DB
	// Dialect is the kind of database; zero: Open asks it.
	Dialect Dialect
	// Prefix begins the names of the tables; empty: DefaultPrefix. Stores with
	// different prefixes in one database have nothing to do with each other.
	Prefix string
	// Unmanaged keeps Open from making or changing tables: it only checks that
	// they are there. Run Migrations with a tool of your own.
	Unmanaged bool
	// Clock is the time at which records and leases end. nil is the right one for
	// programs: records end on package time, and leases on the database's own
	// clock, the only one that all processes share. A test may give its own.
	Clock jobpoll.Clock
}

// A Store is a jobpoll.Store and a jobpoll.Leaser in a SQL database. Make one
// with Open. It is safe for concurrent use.
type Store struct {
	db      *sql.DB
	dialect Dialect
	prefix  string
	clock   jobpoll.Clock
	dbTime  bool // leases are on the database's clock

	queries  queries
	prepared map[string]*sql.Stmt
	turn     chan struct{} // has one for each write under way
	sweepAt  atomic.Int64  // when to sweep next, in Unix seconds
}

var (
	_ jobpoll.Store  = (*Store)(nil)
	_ jobpoll.Leaser = (*Store)(nil)
)

// Open finds out what the database is, makes or migrates the tables unless
// Config.Unmanaged is set, and prepares its statements. Several processes may do
// so at once. Tables of a version newer than this package knows are refused
// (ErrNewSchema).
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s := &Store{
		db: cfg.DB, dialect: cfg.Dialect, prefix: cfg.Prefix,
		clock: cfg.Clock, dbTime: cfg.Clock == nil,
	}
	if s.prefix == "" {
		s.prefix = DefaultPrefix
	}
	if s.clock == nil {
		s.clock = jobpoll.SystemClock()
	}
	if err := cfg.faults(s.prefix); err != nil {
		return nil, err
	}
	if s.dialect == DetectDialect {
		d, err := detect(ctx, s.db)
		if err != nil {
			return nil, err
		}
		s.dialect = d
	}
	s.turn = make(chan struct{}, s.dialect.writers())
	if err := s.prepareSchema(ctx, !cfg.Unmanaged); err != nil {
		return nil, err
	}
	s.queries = makeQueries(s.dialect, s.prefix, s.dbTime)
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (cfg *Config) faults(prefix string) error {
	var all []error
	if cfg.DB == nil {
		all = append(all, errors.New("jobpoll: sqlstore: Config.DB is nil; give it what sql.Open returns"))
	}
	if cfg.Dialect > PostgreSQL {
		all = append(all, fmt.Errorf("jobpoll: sqlstore: Config.Dialect: %d is none; leave it zero to ask the database", cfg.Dialect))
	}
	return errors.Join(append(all, checkPrefix(prefix))...)
}

// Dialect is that of the database.
func (s *Store) Dialect() Dialect { return s.dialect }

// Close frees the prepared statements. The DB stays open. The Store must not be
// in use any more.
func (s *Store) Close() error {
	var all []error
	for _, st := range s.prepared {
		all = append(all, st.Close())
	}
	return errors.Join(all...)
}

// Get returns one record, or an error that matches jobpoll.ErrNotFound.
func (s *Store) Get(ctx context.Context, kind jobpoll.RecordKind, id string) (jobpoll.Record, error) {
	var r row
	key, _ := toID(id)
	err := s.prepared[s.queries.get].QueryRowContext(ctx, int64(kind), key, s.clock.Now().UnixMicro()).Scan(r.targets()...)
	if errors.Is(err, sql.ErrNoRows) {
		return jobpoll.Record{}, fmt.Errorf("jobpoll: sqlstore: %s %q: %w", kind, id, jobpoll.ErrNotFound)
	}
	if err != nil {
		return jobpoll.Record{}, failed(fmt.Sprintf("%s %q could not be read", kind, id), cause(ctx, err))
	}
	return r.record(), nil
}

// Put writes a batch in one transaction.
func (s *Store) Put(ctx context.Context, batch []jobpoll.Record) error {
	if len(batch) == 0 {
		return nil
	}
	done, err := s.takeTurn(ctx)
	if err != nil {
		return failed("nothing written", err)
	}
	err = s.put(ctx, batch)
	done()
	if err != nil {
		return failed(fmt.Sprintf("%d records not written", len(batch)), cause(ctx, err))
	}
	s.sweepSometimes(ctx)
	return nil
}

func (s *Store) put(ctx context.Context, batch []jobpoll.Record) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	if err := s.write(ctx, tx, batch); err != nil {
		return err
	}
	return tx.Commit()
}

// write does the work of a Put in a transaction. It writes first and looks at
// the fence then: so SQLite's transaction has its lock from its first statement
// on, and a batch of an owner that was replaced is rolled back all the same.
func (s *Store) write(ctx context.Context, tx *sql.Tx, batch []jobpoll.Record) error {
	writes, deletes := arrange(batch)
	for size, some := range chunks(writes) {
		args := make([]any, 0, columnCount*size)
		for i := range some {
			args = append(args, some[i].values()...)
		}
		if _, err := s.in(ctx, tx, s.queries.upsert[size]).ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	for size, some := range chunks(deletes) {
		args := make([]any, 0, 2*size)
		for i := range some {
			args = append(args, some[i].kind, some[i].id)
		}
		if _, err := s.in(ctx, tx, s.queries.delete[size]).ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return s.checkFence(ctx, tx, batch)
}

// in is a prepared statement within a transaction.
func (s *Store) in(ctx context.Context, tx *sql.Tx, query string) *sql.Stmt {
	return tx.StmtContext(ctx, s.prepared[query])
}

// checkFence refuses a batch of an owner that was replaced. The lease cannot
// change hands before the transaction ends.
func (s *Store) checkFence(ctx context.Context, tx *sql.Tx, batch []jobpoll.Record) error {
	var newest int64
	read := false
	for _, rec := range batch {
		if rec.Fence == 0 {
			continue
		}
		if !read {
			if err := s.in(ctx, tx, s.queries.fence).QueryRowContext(ctx).Scan(&newest); err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			read = true
		}
		if rec.Fence != uint64(newest) {
			return fmt.Errorf("the write has the fence %d, the lease %d: %w", rec.Fence, newest, jobpoll.ErrNotOwner)
		}
	}
	return nil
}

// takeTurn waits until few enough writes of this Store are under way. It returns
// what ends the turn.
func (s *Store) takeTurn(ctx context.Context) (done func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// cause tells why a context ended where that is what a call failed of.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); err != nil && why != nil && !errors.Is(err, why) {
		return errors.Join(why, err)
	}
	return err
}
