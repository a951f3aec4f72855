// Durable is a service that keeps its jobs in SQLite and is killed in the middle
// of its work, with SIGKILL, as by a power cut. Started again, it goes on where it
// was: no job is lost, none is bought twice, and each outcome is told.
//
//	go -C examples/durable run .
//
// The file service.go is all that a service has to do. This one is the world
// around it: a provider on the loopback interface, and the one who kills and starts
// the service. It ends by itself after some ten seconds.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// In the service's process these tell where its database and the provider are.
const (
	fileVar     = "DURABLE_FILE"
	providerVar = "DURABLE_PROVIDER"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if file := os.Getenv(fileVar); file != "" {
		err = serve(ctx, file, os.Getenv(providerVar))
	} else {
		err = world(ctx)
	}
	if err != nil {
		stop()
		log.Fatal(err)
	}
}

// outages are the submissions during which the power fails: the provider has taken
// the job, and its answer does not arrive.
var outages = []int{2, 5}

// lastOutage comes while jobs are only watched.
const lastOutage = 2500 * time.Millisecond

func world(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "durable-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "jobs.db")

	p := &power{failed: make(chan struct{})}
	provider := loopback.Start(loopback.Config{Wire: loopback.Replicate(), Credential: "secret", Script: p.bought})
	defer provider.Close()

	for range outages {
		if err := p.run(ctx, file, provider.URL(), nil); err != nil {
			return err
		}
	}
	if err := p.run(ctx, file, provider.URL(), time.After(lastOutage)); err != nil {
		return err
	}
	if err := p.run(ctx, file, provider.URL(), nil); err != nil {
		return err
	}
	return p.report(ctx, file)
}

// power is the mains of the service. It also keeps what was bought.
type power struct {
	failed chan struct{} // gets one when the service is to be killed, and one when it is dead

	mu   sync.Mutex
	jobs map[string]int // how often each order was bought
	n    int
}

// bought is called by the provider for each job that it takes.
func (p *power) bought(n int, body json.RawMessage) string {
	var sent struct {
		Input struct {
			Key string `json:"client_key"`
		}
	}
	_ = json.Unmarshal(body, &sent)
	p.mu.Lock()
	if p.jobs == nil {
		p.jobs = map[string]int{}
	}
	p.jobs[sent.Input.Key]++
	outage := p.n < len(outages) && n == outages[p.n]
	if outage {
		p.n++
	}
	p.mu.Unlock()
	if outage {
		p.failed <- struct{}{}
		<-p.failed
	}
	return fmt.Sprintf("queued; at 1s running; at %ds succeeded", 3+n%3)
}

// run starts the service and kills it when the power fails, or at the instant;
// it returns when the service is gone.
func (p *power) run(ctx context.Context, file, url string, at <-chan time.Time) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	service := exec.CommandContext(ctx, self)
	service.Env = append(os.Environ(), fileVar+"="+file, providerVar+"="+url)
	service.Stdout, service.Stderr = os.Stdout, os.Stderr
	if err := service.Start(); err != nil {
		return err
	}
	fmt.Println("- the service starts")
	ended := make(chan error, 1)
	go func() { ended <- service.Wait() }()
	select {
	case err := <-ended:
		fmt.Println("- the service has nothing left to do")
		return err
	case <-p.failed:
		service.Process.Kill()
		<-ended
		p.failed <- struct{}{}
		fmt.Println("- kill -9: a job is bought, and its id was not heard")
	case <-at:
		service.Process.Kill()
		<-ended
		fmt.Println("- kill -9: jobs are running")
	}
	return nil
}

// report shows what became of each order, and fails if that is not what is promised.
func (p *power) report(ctx context.Context, file string) error {
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "SELECT customer, job, outcome, told FROM orders ORDER BY customer")
	if err != nil {
		return err
	}
	defer rows.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Printf("\n%-10s %-8s %-28s %-10s %s\n", "order", "bought", "job", "outcome", "told")
	var broken error
	n := 0
	for rows.Next() {
		var customer string
		var job, outcome sql.NullString
		var told int
		if err := rows.Scan(&customer, &job, &outcome, &told); err != nil {
			return err
		}
		n++
		fmt.Printf("%-10s %-8s %-28s %-10s %s\n", customer, times(p.jobs[customer]), job.String, outcome.String, times(told))
		if p.jobs[customer] != 1 || outcome.String != "succeeded" || told < 1 {
			broken = errors.Join(broken, fmt.Errorf("the order of %s did not go as promised", customer))
		}
	}
	if n != len(customers) {
		broken = errors.Join(broken, fmt.Errorf("%d orders are left of %d", n, len(customers)))
	}
	if err := errors.Join(rows.Err(), broken); err != nil {
		return err
	}
	fmt.Printf("\n%d orders, each bought once and told, over %d kills\n", n, len(outages)+1)
	return nil
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprint(n, " times")
}
