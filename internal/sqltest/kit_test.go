package sqltest

import (
	"database/sql"
	"testing"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/sqlstore"
	"github.com/stretchr/testify/require"
)

func TestBothDialectsPassTheKit(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		places := map[jobpoll.Store]opened{}
		open := func(prefix string, clock jobpoll.Clock) (jobpoll.Store, error) {
			db, err := sql.Open(d.driver, d.dsn)
			if err != nil {
				return nil, err
			}
			s, err := sqlstore.Open(t.Context(), sqlstore.Config{DB: db, Prefix: prefix, Clock: clock})
			if err != nil {
				return nil, err
			}
			places[s] = opened{db, prefix, clock}
			return s, nil
		}
		require.NoError(t, polltest.TestStore(polltest.Stores{
			New: func(clock jobpoll.Clock) (jobpoll.Store, error) {
				return open(string(rune('a'+len(places)/26))+string(rune('a'+len(places)%26))+"_", clock)
			},
			Again: func(s jobpoll.Store) (jobpoll.Store, error) { return open(places[s].prefix, places[s].clock) },
			Close: func(s jobpoll.Store) error {
				if err := s.(*sqlstore.Store).Close(); err != nil {
					return err
				}
				return places[s].db.Close()
			},
			Logf: t.Logf,
		}))
	})
}

// opened is what a store was made of.
type opened struct {
	db     *sql.DB
	prefix string
	clock  jobpoll.Clock
}
