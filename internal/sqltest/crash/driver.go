package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
	"github.com/jobpoll/jobpoll/sqlstore"
)

// longestLife is how long a worker works at most before it is killed, and
// longestStart how long it may take to begin.
const (
	longestLife  = 500 * time.Millisecond
	longestStart = 30 * time.Second
)

// patience is how long the last worker may take to finish.
const patience = 90 * time.Second

// driver starts and kills the worker, and is all that it talks to.
type driver struct {
	settings
	ledger   *ledger
	place    place
	db       *sql.DB
	store    *sqlstore.Store
	clock    fastClock
	provider *loopback.Server
	server   http.Server
	url      string

	up chan struct{} // has one when a worker works

	mu   sync.Mutex
	rand *rand.Rand
	trap trap
}

// trap kills the worker while it makes a call of a kind.
type trap struct {
	call  string // "": none
	after bool   // once the call has been answered, else before it has an effect
	left  int    // so many calls first
	snap  func() // kills
}

func newDriver(s settings, at place) (*driver, error) {
	d := &driver{settings: s, up: make(chan struct{}, 1), ledger: newLedger(), place: at, rand: rand.New(rand.NewPCG(s.seed, 0)), clock: fastClock{time.Now().Round(0), s.speed}}
	d.provider = loopback.New(loopback.Config{Wire: loopback.Replicate(), Clock: d.clock, Credential: "secret", Script: d.script, Fault: d.fault})
	mux := http.NewServeMux()
	mux.Handle("/v1/", d.provider)
	mux.HandleFunc("GET /orders", func(w http.ResponseWriter, _ *http.Request) {
		select {
		case d.up <- struct{}{}:
		default:
		}
		json.NewEncoder(w).Encode(d.ledger.open())
	})
	mux.HandleFunc("POST /told", func(w http.ResponseWriter, r *http.Request) {
		var t told
		if err := json.NewDecoder(r.Body).Decode(&t); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		d.ledger.told(t)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d.url = "http://" + listener.Addr().String()
	d.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := callOf(r)
		d.spring(call, false)
		mux.ServeHTTP(w, r)
		d.spring(call, true)
	})
	go d.server.Serve(listener)
	if d.db, err = sql.Open(at.Driver, at.DSN); err == nil {
		d.store, err = sqlstore.Open(context.Background(), sqlstore.Config{DB: d.db})
	}
	return d, err
}

func (d *driver) close() {
	d.provider.Close()
	d.server.Close()
	d.db.Close()
}

// The kinds of call that a worker makes.
var calls = []string{"submit", "submit", "submit", "look", "list", "told", "told"}

func callOf(r *http.Request) string {
	switch {
	case r.URL.Path == "/told":
		return "told"
	case r.Method == http.MethodPost:
		return "submit"
	case r.URL.Path == "/v1/predictions":
		return "list"
	case strings.HasPrefix(r.URL.Path, "/v1/"):
		return "look"
	}
	return "orders"
}

func (d *driver) draw(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rand.IntN(n)
}

// script says how a job goes that the provider has just taken.
func (d *driver) script(n int, body json.RawMessage) string {
	var sent struct {
		Input struct {
			Key string `json:"client_key"`
		}
	}
	_ = json.Unmarshal(body, &sent)
	state := "succeeded"
	if d.draw(5) == 0 {
		state = "failed"
	}
	d.ledger.taken(sent.Input.Key, loopback.Replicate().ID(n), state)
	return fmt.Sprintf("queued; at 2s running; at %ds %s", 4+d.draw(30), state)
}

// fault breaks one answer in ten, and more of those to submissions.
func (d *driver) fault(_ int, r *http.Request) loopback.Fault {
	often := 3
	if callOf(r) != "submit" {
		often = 20
	}
	switch {
	case d.draw(2000) == 0: // rarely, as the Poller goes slower for long
		return loopback.Fault{Status: 429, Before: true, RetryAfter: time.Second}
	case d.draw(often) > 0:
		return loopback.Fault{}
	}
	return []loopback.Fault{
		{Status: 500},
		{Status: 503, Before: true},
		{Kind: polltest.FaultReset},
		{Kind: polltest.FaultReset, Before: true},
		{Kind: polltest.FaultHTML},
		{Slow: 3 * time.Second},
		{Slow: 80 * time.Second}, // longer than the worker waits
	}[d.draw(7)]
}

// spring kills the worker if the trap is set for this call.
func (d *driver) spring(call string, after bool) {
	d.mu.Lock()
	hit := d.trap.call == call && d.trap.after == after
	if hit {
		d.trap.left--
		hit = d.trap.left < 0
	}
	if hit {
		d.trap.call = ""
	}
	snap := d.trap.snap
	d.mu.Unlock()
	if hit {
		snap()
	}
}

func (d *driver) run(ctx context.Context) error {
	for round := range d.rounds {
		for i := range d.orders {
			d.ledger.ordered(order{[]string{routeSeek, routeBlind}[i%2], fmt.Sprintf("order-%04d-%d", round, i)})
		}
		why, err := d.round(ctx)
		if err == nil {
			err = d.readStore(ctx)
		}
		if err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		d.ledger.killed(why)
		if d.verbose {
			fmt.Printf("round %d: killed %s, %d orders open\n", round+1, why, len(d.ledger.open()))
		}
	}
	return errors.Join(d.finish(ctx), d.readStore(ctx))
}

// worker starts one. kill ends it as a power cut would, and returns once it is
// gone; it may be called again.
func (d *driver) worker(ctx context.Context) (kill func(), gone <-chan struct{}, err error) {
	config, err := json.Marshal(workerConfig{Place: d.place, URL: d.url, Clock: d.clock, Verbose: d.verbose})
	if err != nil {
		return nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), workerVar+"="+string(config))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	return func() {
		cmd.Process.Kill()
		<-ended
	}, ended, nil
}

// round runs a worker until it is killed, and says how: while it makes a call, or
// at a random instant, of its start too.
func (d *driver) round(ctx context.Context) (why string, err error) {
	select {
	case <-d.up: // of the one before
	default:
	}
	kill, gone, err := d.worker(ctx)
	if err != nil {
		return "", err
	}
	defer kill()
	sprung := make(chan string, 1)
	d.mu.Lock()
	life := time.Duration(d.rand.Int64N(int64(longestLife)))
	early := d.rand.IntN(6) == 0
	if !early && d.rand.IntN(4) > 0 {
		t := trap{call: calls[d.rand.IntN(len(calls))], after: d.rand.IntN(2) == 0, left: d.rand.IntN(4)}
		name := "before a " + t.call
		if t.after {
			name = "after a " + t.call
		}
		t.snap = func() { sprung <- name; kill() }
		d.trap, life = t, longestLife
	}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.trap = trap{}
		d.mu.Unlock()
	}()
	why, up := "at a random instant", d.up
	end := time.After(longestStart)
	if early {
		why, up, end = "at its start", nil, time.After(life)
	}
	for {
		select {
		case <-up:
			up, end = nil, time.After(life)
		case why = <-sprung:
			return why, nil
		case <-end:
			if up != nil {
				return "", errors.New("the worker does not begin to work")
			}
			return why, nil
		case <-gone:
			select {
			case why = <-sprung:
				return why, nil
			default:
				return "", errors.New("the worker ended by itself")
			}
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// finish lets a last worker bring all orders to their end.
func (d *driver) finish(ctx context.Context) error {
	kill, gone, err := d.worker(ctx)
	if err != nil {
		return err
	}
	defer kill()
	late := time.After(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for quiet := 0; quiet < 40; { // some time for what is told twice
		select {
		case <-tick.C:
		case <-gone:
			return errors.New("the last worker ended by itself")
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return nil // the verdict names what is open
		}
		if quiet++; len(d.ledger.open()) > 0 {
			quiet = 0
		}
	}
	return nil
}

// readStore reads in the database which outcomes it knows to have been told.
func (d *driver) readStore(ctx context.Context) error {
	for rec, err := range d.store.Load(ctx) {
		if err != nil {
			return err
		}
		var v struct {
			Job             jobpoll.Job
			Told, Delivered bool
		}
		if rec.Kind != jobpoll.RecordJob && rec.Kind != jobpoll.RecordSubmission {
			continue
		}
		if err := json.Unmarshal(rec.Data, &v); err != nil {
			return err
		}
		if v.Told || v.Delivered {
			d.ledger.delivered(v.Job.ClientKey)
		}
	}
	return nil
}
