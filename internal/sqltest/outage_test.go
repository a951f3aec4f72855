package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/sqlstore"
	"github.com/stretchr/testify/require"
)

// sqliteFile is a new file, and its DSN without a busy_timeout.
func sqliteFile(t *testing.T) (file, dsn string) {
	file = filepath.Join(t.TempDir(), "jobs.db")
	return file, "file:" + file + "?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"
}

func TestALockedSQLiteIsToldAndHeals(t *testing.T) {
	_, dsn := sqliteFile(t)
	d := database{sqlstore.SQLite, "sqlite", dsn}
	s := d.store(t, sqlstore.Config{})
	require.NoError(t, s.Put(t.Context(), []jobpoll.Record{record("a", "1")}))
	lock := lockSQLite(t, d.open(t))
	batch := []jobpoll.Record{record("a", "2")}
	require.ErrorIs(t, s.Put(t.Context(), batch), sqlstore.ErrBusy)
	_, err := s.Lease(t.Context(), "me", time.Minute)
	require.ErrorIs(t, err, sqlstore.ErrBusy)
	require.Equal(t, map[string]string{"a": "1"}, contents(t, s), "reading goes on")
	lock()
	require.NoError(t, s.Put(t.Context(), batch))
	require.Equal(t, map[string]string{"a": "2"}, contents(t, s))
}

// lockSQLite locks a database as a writer that does not end.
func lockSQLite(t *testing.T, db *sql.DB) (unlock func()) {
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), "PRAGMA busy_timeout = 10000") // another's write may be under way
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	return func() {
		_, err := conn.ExecContext(context.Background(), "ROLLBACK")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
}

func TestADatabaseThatCannotBeWrittenIsTold(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		require.NoError(t, d.store(t, sqlstore.Config{}).Put(t.Context(), []jobpoll.Record{record("a", "1")}))
		if d.dialect == sqlstore.SQLite {
			d.dsn += "&mode=ro"
		} else {
			d.dsn += " default_transaction_read_only=on"
		}
		s := d.store(t, sqlstore.Config{})
		require.ErrorIs(t, s.Put(t.Context(), []jobpoll.Record{record("a", "2")}), sqlstore.ErrReadOnly)
		_, err := s.Lease(t.Context(), "me", time.Minute)
		require.ErrorIs(t, err, sqlstore.ErrReadOnly)
		require.Equal(t, map[string]string{"a": "1"}, contents(t, s))
		d.dsn = strings.Replace(d.dsn, "jobs.db", "none.db", 1)
		if d.dialect == sqlstore.SQLite {
			_, err = sqlstore.Open(t.Context(), sqlstore.Config{DB: d.open(t)})
			require.ErrorIs(t, err, sqlstore.ErrUnreachable)
		}
	})
}

func TestAFullSQLiteIsToldAndHeals(t *testing.T) {
	_, dsn := sqliteFile(t)
	d := database{sqlstore.SQLite, "sqlite", dsn}
	d.store(t, sqlstore.Config{})
	db, err := sql.Open("sqlite", dsn)
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	s := d.store(t, sqlstore.Config{DB: db})
	_, err = db.Exec("PRAGMA max_page_count = 60")
	require.NoError(t, err)
	want := map[string]string{}
	for i := 0; ; i++ {
		require.Less(t, i, 1000)
		rec := record(fmt.Sprint(i), strings.Repeat("x", 5000))
		if err = s.Put(t.Context(), []jobpoll.Record{rec, record("last", fmt.Sprint(i))}); err != nil {
			break
		}
		want[rec.ID], want["last"] = string(rec.Data), fmt.Sprint(i)
	}
	require.ErrorIs(t, err, sqlstore.ErrFull)
	require.Equal(t, want, contents(t, s), "what was acknowledged is there, and nothing of what was not")
	_, err = db.Exec("PRAGMA max_page_count = 600")
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), []jobpoll.Record{record("last", "fits again")}))
}

// cable is a connection to a server that can be cut.
type cable struct {
	net.Listener
	to string

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

// newCable listens in a new directory for connections to a Unix socket.
func newCable(t *testing.T, socket string) (dir string, c *cable) {
	dir = t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, filepath.Base(socket)))
	require.NoError(t, err)
	c = &cable{Listener: l, to: socket}
	t.Cleanup(func() {
		l.Close()
		c.set(true)
	})
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			c.connect(from)
		}
	}()
	return dir, c
}

func (c *cable) connect(from net.Conn) {
	to, err := net.Dial("unix", c.to)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || c.cut {
		from.Close()
		if err == nil {
			to.Close()
		}
		return
	}
	c.conns = append(c.conns, from, to)
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			io.Copy(way[0], way[1])
			way[0].Close()
		}()
	}
}

func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	if cut {
		for _, conn := range c.conns {
			conn.Close()
		}
		c.conns = nil
	}
}

// A server that goes away and comes back: connections in the pool are lost, new
// ones are refused for a while.
func TestAPostgreSQLThatIsGoneForAWhileIsToldAndHeals(t *testing.T) {
	dsn, drop, err := NewPostgres(fmt.Sprintf("sqltest%d", databases.Add(1)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, drop()) })
	host, rest, _ := strings.Cut(strings.TrimPrefix(dsn, "host="), " ")
	require.True(t, filepath.IsAbs(host), "this test needs a server on a Unix socket, as .ci/postgres starts one; the DSN is %q", dsn)
	dir, cable := newCable(t, filepath.Join(host, ".s.PGSQL.5432"))
	d := database{sqlstore.PostgreSQL, "pgx", "host=" + dir + " " + rest}
	s := d.store(t, sqlstore.Config{})
	fence, err := s.Lease(t.Context(), "me", time.Hour)
	require.NoError(t, err)
	rec := record("a", "1")
	rec.Fence = fence
	require.NoError(t, s.Put(t.Context(), []jobpoll.Record{rec}))
	for round := range 3 {
		cable.set(true)
		for range 3 {
			require.ErrorIs(t, s.Put(t.Context(), []jobpoll.Record{rec}), sqlstore.ErrUnreachable)
		}
		_, err := s.Get(t.Context(), rec.Kind, rec.ID)
		require.ErrorIs(t, err, sqlstore.ErrUnreachable)
		_, err = s.Lease(t.Context(), "me", time.Hour)
		require.ErrorIs(t, err, sqlstore.ErrUnreachable)
		cable.set(false)
		again, err := s.Lease(t.Context(), "me", time.Hour)
		require.NoError(t, err)
		require.Equal(t, fence, again)
		rec.Data = fmt.Append(nil, round)
		require.NoError(t, s.Put(t.Context(), []jobpoll.Record{rec}))
		require.Equal(t, map[string]string{"a": fmt.Sprint(round)}, contents(t, s))
	}
}

// pollerRig is a Poller over a store, and what it told.
func pollerRig(t *testing.T, clock *polltest.Clock, provider *polltest.Provider, s jobpoll.Store) (*polltest.Harness, *polltest.Recorder) {
	seen := &polltest.Recorder{}
	return polltest.Start(t, jobpoll.Config{
		Clock: clock, Store: s, Owner: "me", Routes: []jobpoll.Route{{Name: "fal", Checker: provider}}, Callbacks: seen.Callbacks(),
	}), seen
}

func TestWhileADatabaseIsLockedPollingGoesOnAndNothingIsTold(t *testing.T) {
	_, dsn := sqliteFile(t)
	d := database{sqlstore.SQLite, "sqlite", dsn}
	clock := polltest.NewClock(start)
	provider := polltest.NewProvider(clock)
	provider.Default("queued; at 10s running; at 60s succeeded")
	h, seen := pollerRig(t, clock, provider, d.store(t, sqlstore.Config{Clock: clock}))
	require.NoError(t, h.Watch(t.Context(), jobpoll.Job{Route: "fal", ID: "a"}))
	unlock := lockSQLite(t, d.open(t))
	clock.Advance(20 * time.Second)
	looks := len(provider.Looks("a"))
	require.Positive(t, looks)
	require.ErrorIs(t, h.Watch(t.Context(), jobpoll.Job{Route: "fal", ID: "b"}), sqlstore.ErrBusy)
	require.True(t, h.Health().Store.Failing)
	clock.Advance(2 * time.Minute)
	require.Greater(t, len(provider.Looks("a")), looks)
	require.Empty(t, seen.Outcomes(), "nothing is told that is not stored")
	unlock()
	clock.Advance(2 * time.Minute)
	require.False(t, h.Health().Store.Failing)
	require.Len(t, seen.Outcomes(), 1)
	require.Equal(t, jobpoll.ReasonSucceeded, seen.Outcomes()[0].Reason)
}

// The jobs of the backup have ended meanwhile, and what is not in it is unknown.
func TestABackupOfYesterdayBringsItsJobsToAnEnd(t *testing.T) {
	file, dsn := sqliteFile(t)
	d := database{sqlstore.SQLite, "sqlite", dsn}
	clock := polltest.NewClock(start)
	provider := polltest.NewProvider(clock)
	provider.Add("kept", "queued; at 60s succeeded")
	provider.Add("expired", "queued; at 60s succeeded; at 1h 410")
	provider.Add("running", "queued; at 30h succeeded")
	today := d.store(t, sqlstore.Config{Clock: clock})
	h, seen := pollerRig(t, clock, provider, today)
	for _, id := range []string{"kept", "expired", "running"} {
		require.NoError(t, h.Watch(t.Context(), jobpoll.Job{Route: "fal", ID: id, Expected: 30 * time.Hour}))
	}
	clock.Advance(10 * time.Second)
	_, err := d.open(t).Exec("VACUUM INTO '" + file + ".backup'")
	require.NoError(t, err)
	clock.Advance(24 * time.Hour)
	require.Len(t, seen.Outcomes(), 2)
	h.Stop()

	d.dsn = strings.Replace(dsn, file, file+".backup", 1)
	_, seen = pollerRig(t, clock, provider, d.store(t, sqlstore.Config{Clock: clock}))
	clock.Advance(12 * time.Hour)
	ends := map[string]jobpoll.Reason{}
	for _, o := range seen.Outcomes() {
		require.NotContains(t, ends, o.Job.ID, "told twice")
		require.Equal(t, jobpoll.AdviceDoNotResubmit, o.Resubmit)
		ends[o.Job.ID] = o.Reason
	}
	require.Equal(t, map[string]jobpoll.Reason{
		"kept": jobpoll.ReasonSucceeded, "expired": jobpoll.ReasonResultExpired, "running": jobpoll.ReasonSucceeded,
	}, ends)
}
