// Command load lets a second process send signed webhooks, over loopback, to a
// service that watches many jobs, and prints how many it takes and how long it
// takes to answer. Each ends a job.
//
//	go -C internal/webhookcheck run ./load
//	go -C internal/webhookcheck run ./load -jobs 1000000 -rate 5000
//
// An empty handler beside it shows what of that is net/http and the machine. The
// program fails where a delivery was not answered by 200, or where the end of a job
// that was acknowledged was not told, or more than once; it does not judge the figures.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

// order is what the sender has to do, as the flags say.
type order struct {
	Jobs    int           `json:"jobs"`
	Rate    float64       `json:"rate"`
	Senders int           `json:"senders"`
	For     time.Duration `json:"for"`
	URL     string        `json:"url"`
	First   int           `json:"first"` // the first job that is ended
}

// orderEnv holds the order of the child process, as JSON.
const orderEnv = "JOBPOLL_WEBHOOK_LOAD"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if text := os.Getenv(orderEnv); text != "" {
		err = obey(ctx, text)
	} else {
		err = run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var o order
	flag.IntVar(&o.Jobs, "jobs", 100_000, "how many jobs are watched")
	flag.Float64Var(&o.Rate, "rate", 1000, "deliveries a second, for the latency")
	flag.IntVar(&o.Senders, "senders", 16, "connections of the sender")
	flag.DurationVar(&o.For, "for", 5*time.Second, "how long each of the two measurements lasts")
	flag.Parse()
	if o.Jobs < 2 || o.Rate <= 0 || o.Senders <= 0 || o.For <= 0 || flag.NArg() > 0 {
		return errors.New("-jobs, -rate, -senders and -for must be positive, and there are no arguments")
	}
	s, err := startService(ctx, o.Jobs)
	if err != nil {
		return err
	}
	defer s.close()
	fmt.Printf("%d jobs watched, %d connections\n\n%-34s %10s %8s %9s %9s %9s %9s\n", o.Jobs, o.Senders, "", "deliveries", "a second", "p50 ms", "p99 ms", "p99.9 ms", "max ms")
	paced := o.Rate
	for _, o.Rate = range []float64{paced, 0} {
		for _, path := range []string{barePath, hookPath} {
			o.URL = s.url + path
			f, err := inChild(ctx, o)
			if err != nil {
				return err
			}
			fmt.Printf("%-34s %10d %8.0f %9.2f %9.2f %9.2f %9.2f\n", o.name(path), f.Sent, f.PerSecond, f.P50, f.P99, f.P999, f.Max)
			if f.Failed > 0 {
				return fmt.Errorf("%d deliveries were not answered by 200, the first: %s", f.Failed, f.Why)
			}
			if path == hookPath {
				o.First += f.Sent
			}
		}
	}
	return s.allTold(ctx, o.First)
}

func (o order) name(path string) string {
	what := "webhooks"
	if path == barePath {
		what = "an empty handler"
	}
	if o.Rate == 0 {
		return what + ", as fast as it goes"
	}
	return fmt.Sprintf("%s, %.0f a second", what, o.Rate)
}

// inChild sends from a process of its own.
func inChild(ctx context.Context, o order) (figures, error) {
	ctx, cancel := context.WithTimeout(ctx, o.For+time.Minute)
	defer cancel()
	text, err := json.Marshal(o)
	if err != nil {
		return figures{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return figures{}, err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), orderEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return figures{}, fmt.Errorf("the sender: %w", err)
	}
	var f figures
	return f, json.Unmarshal(out.Bytes(), &f)
}
