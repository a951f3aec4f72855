package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/provider"
	"github.com/jobpoll/jobpoll/sqlstore"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// customers order a video each, the name being the key of the order.
var customers = []string{"ada", "ben", "cleo", "dan", "eve", "finn"}

// service takes orders, has them rendered, and writes down what came of them.
type service struct {
	db        *sql.DB
	store     *sqlstore.Store
	replicate *provider.Replicate
	poller    *jobpoll.Poller
}

// serve is the service. It returns when all orders are done.
func serve(ctx context.Context, file, providerURL string) error {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS orders (
		customer TEXT PRIMARY KEY, job TEXT, outcome TEXT, told INTEGER NOT NULL DEFAULT 0)`); err != nil {
		return err
	}
	s := &service{db: db}
	if s.store, err = sqlstore.Open(ctx, sqlstore.Config{DB: db}); err != nil {
		return err
	}
	defer s.store.Close()
	if s.replicate, err = provider.NewReplicate(provider.Config{BaseURL: providerURL, Credentials: provider.Secret("secret")}); err != nil {
		return err
	}
	owner := make(chan struct{})
	own := sync.OnceFunc(func() { close(owner) })
	s.poller, err = jobpoll.New(jobpoll.Config{
		Routes: []jobpoll.Route{{
			Name: "replicate", Checker: seeker{s.replicate, providerURL},
			// Short, as the provider is at hand: how long a submission may take, and
			// how long a job that was bought may not be visible yet.
			SubmitTimeout: 2 * time.Second, Stop: jobpoll.StopRules{MissingGrace: 2 * time.Second},
		}},
		Callbacks: jobpoll.Callbacks{OnStop: s.told},
		Hooks: jobpoll.Hooks{OwnerChanged: func(e jobpoll.OwnerEvent) {
			if e.Owner {
				own()
			}
		}},
		Store: s.store,
		Owner: "durable", // the same each time: it need not wait for the lease of the one that was killed
	})
	if err != nil {
		return err
	}
	if _, err := s.poller.Restore(ctx); err != nil { // before there are new intents
		return err
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	ended := make(chan error, 1)
	go func() { ended <- s.poller.Run(ctx) }()
	select {
	case <-owner:
		err = s.work(ctx)
		done()
		return errors.Join(err, <-ended)
	case err := <-ended:
		return err
	}
}

// work takes the orders, and submits those that are not done until all are.
// It does not remember which of them it has submitted: the Poller does.
func (s *service) work(ctx context.Context) error {
	for _, customer := range customers {
		if err := s.order(ctx, customer); err != nil {
			return err
		}
	}
	for {
		open, err := s.open(ctx)
		if err != nil || len(open) == 0 {
			return err
		}
		for _, customer := range open {
			s.submit(ctx, customer)
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// order writes the order and the intent to submit it down, in one transaction:
// there is both or nothing.
func (s *service) order(ctx context.Context, customer string) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	result, err := tx.ExecContext(ctx, "INSERT INTO orders (customer) VALUES (?) ON CONFLICT DO NOTHING", customer)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); n == 0 {
		return err // ordered before the service was killed
	}
	intent, err := jobpoll.Intent(job(customer), time.Now())
	if err != nil {
		return err
	}
	if err := s.store.Enlist(ctx, tx, intent); err != nil {
		return err
	}
	return tx.Commit()
}

func job(customer string) jobpoll.Job {
	return jobpoll.Job{Route: "replicate", ClientKey: customer, Expected: 4 * time.Second}
}

func (s *service) submit(ctx context.Context, customer string) {
	_, known := s.poller.Find(customer)
	j, err := s.poller.Submit(ctx, jobpoll.Submission{
		Job: job(customer),
		Send: func(ctx context.Context) (jobpoll.Sent, error) {
			j, report, err := s.replicate.Submit(ctx, provider.Order{Model: "acme/video", Input: map[string]string{"client_key": customer}})
			return jobpoll.Sent{ID: j.ID, Ref: j.Ref, Report: report}, err
		},
	})
	switch {
	case err != nil && !errors.Is(err, jobpoll.ErrResolved):
		fmt.Printf("  %s: %v\n", customer, err) // it is tried again
	case !known:
		fmt.Printf("  %s: watched as %s\n", customer, j.ID)
	}
}

// told is called with the outcome of each job, until it returns nil: at least
// once, and once more if the service dies before that is stored. So it may be
// called twice for one order.
func (s *service) told(ctx context.Context, o jobpoll.Outcome) error {
	customer := o.Job.ClientKey
	if o.Reason == jobpoll.ReasonNotSent {
		fmt.Printf("  %s: not sent, and not bought: once more\n", customer)
		return nil // work submits it
	}
	fmt.Printf("  %s: %s\n", customer, o.Reason)
	_, err := s.db.ExecContext(ctx, "UPDATE orders SET job = ?, outcome = ?, told = told + 1 WHERE customer = ?", o.Job.ID, o.Reason.String(), customer)
	return err
}

// open lists the orders that are not done.
func (s *service) open(ctx context.Context) ([]string, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT customer FROM orders WHERE outcome IS NULL ORDER BY customer")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var customer string
		if err := rows.Scan(&customer); err != nil {
			return nil, err
		}
		all = append(all, customer)
	}
	return all, rows.Err()
}

// seeker looks for a job whose id was not heard: in the account's list, by the
// key in its input. That is what makes a lost answer harmless.
type seeker struct {
	*provider.Replicate
	url string
}

// Lookup makes a jobpoll.Reconciler of it.
func (s seeker) Lookup(ctx context.Context, lost jobpoll.Lost) (jobpoll.Finding, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/predictions", nil)
	if err != nil {
		return jobpoll.Finding{}, err
	}
	req.Header.Set("Authorization", "Bearer secret")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return jobpoll.Finding{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return jobpoll.Finding{}, fmt.Errorf("list of predictions: %s", resp.Status)
	}
	var list struct {
		Next    string
		Results []struct {
			ID    string
			Input struct {
				Key string `json:"client_key"`
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return jobpoll.Finding{}, err
	}
	for _, v := range list.Results {
		if v.Input.Key == lost.Job.ClientKey {
			return jobpoll.Finding{State: jobpoll.FindingPresent, ID: v.ID}, nil
		}
	}
	if list.Next != "" {
		return jobpoll.Finding{}, nil // there is more of it: unknown
	}
	return jobpoll.Finding{State: jobpoll.FindingAbsent}, nil
}
