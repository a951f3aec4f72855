// Crash kills a worker that submits and watches jobs at random instants, starts
// it again, and shows that no job is lost and none is bought twice.
//
//	go -C internal/sqltest run ./crash                       # 200 rounds with SQLite
//	go -C internal/sqltest run ./crash -db postgres -rounds 50
//	go -C internal/sqltest run ./crash -seed 7 -v
//
// The driver, which is this process, is the provider too: package
// polltest/loopback as Replicate, with broken answers. The worker is a process of
// its own over a database, and is killed with SIGKILL: after some time, or while
// it makes a call of a kind. After the last round it may finish. Then each order
// must have come to its end:
//
//   - no order was taken by the provider twice;
//   - on the route "seek", which can look jobs up by the ClientKey, each job that the
//     provider took was told with the provider's id and state;
//   - on the route "blind", which cannot, that or as ambiguous;
//   - no outcome was told again after its delivery had been stored.
//
// For PostgreSQL the environment variable JOBPOLL_POSTGRES has the DSN of a server
// for tests; .ci/postgres starts one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/jobpoll/jobpoll/internal/sqltest"
)

// workerVar tells a process that it is the worker, and how.
const workerVar = "JOBPOLL_CRASH_WORKER"

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if config := os.Getenv(workerVar); config != "" {
		if err := work(ctx, config); err != nil {
			log.Fatal("worker: ", err)
		}
		return
	}
	if err := drive(ctx); err != nil {
		stop()
		log.Fatal(err)
	}
}

// settings are what the flags say.
type settings struct {
	rounds  int
	orders  int
	seed    uint64
	db      string
	speed   int
	verbose bool
}

func drive(ctx context.Context) error {
	var s settings
	flag.IntVar(&s.rounds, "rounds", 200, "how often the worker is killed")
	flag.IntVar(&s.orders, "orders", 6, "new orders in each round")
	flag.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()), "of the instants and the faults")
	flag.StringVar(&s.db, "db", "sqlite", "sqlite or postgres")
	flag.IntVar(&s.speed, "speed", 20, "seconds of the jobs in one second")
	flag.BoolVar(&s.verbose, "v", false, "show each round, and what the worker logs")
	flag.Parse()
	if flag.NArg() > 0 || s.rounds < 1 || s.orders < 1 || s.speed < 1 {
		return errors.New("see -h")
	}
	db, remove, err := database(s.db)
	if err != nil {
		return err
	}
	begun := time.Now()
	fmt.Printf("%d rounds with %s, -seed %d\n", s.rounds, s.db, s.seed)
	d, err := newDriver(s, db)
	if err != nil {
		return errors.Join(err, remove())
	}
	err = d.run(ctx)
	d.close()
	fmt.Printf("%s in %.1f s\n", d.ledger.summary(), time.Since(begun).Seconds())
	if err == nil {
		err = d.ledger.verdict()
	}
	if err != nil && s.db == "sqlite" {
		return fmt.Errorf("%w\nthe database is left in %s", err, db.DSN)
	}
	return errors.Join(err, remove())
}

// place is where the worker's database is.
type place struct{ Driver, DSN string }

func database(kind string) (place, func() error, error) {
	switch kind {
	case "sqlite":
		dir, err := os.MkdirTemp("", "jobpoll-crash-")
		return place{"sqlite", sqltest.SQLiteDSN(filepath.Join(dir, "jobs.db"))}, func() error { return os.RemoveAll(dir) }, err
	case "postgres":
		dsn, drop, err := sqltest.NewPostgres("crash")
		return place{"pgx", dsn}, drop, err
	}
	return place{}, nil, fmt.Errorf("-db %s: it is sqlite or postgres", kind)
}
