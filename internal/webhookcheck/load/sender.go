package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobpoll/jobpoll/polltest/sign"
)

// figures are what the sender has measured; times in ms.
type figures struct {
	Sent, Failed        int
	Why                 string
	PerSecond           float64
	P50, P99, P999, Max float64
}

// obey is the side of the child.
func obey(ctx context.Context, text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(send(ctx, o))
}

// send ends one job after the other, until the time is over or all are ended. A
// delivery that has to wait for a connection has its wait counted: it is due
// when it is due.
func send(ctx context.Context, o order) figures {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.Senders}}
	var next atomic.Int64
	var mu sync.Mutex
	var f figures
	var took []time.Duration
	begun := time.Now()
	var all sync.WaitGroup
	for range o.Senders {
		all.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				due := time.Now()
				if o.Rate > 0 {
					due = begun.Add(time.Duration(float64(n) / o.Rate * float64(time.Second)))
					time.Sleep(time.Until(due))
				}
				if due.Sub(begun) >= o.For || o.First+n >= o.Jobs || ctx.Err() != nil {
					return
				}
				err := deliver(ctx, client, o.URL, o.First+n)
				d := time.Since(due)
				mu.Lock()
				f.Sent++
				took = append(took, d)
				if err != nil {
					f.Failed++
					f.Why = cmp.Or(f.Why, err.Error())
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	f.PerSecond = float64(f.Sent) / time.Since(begun).Seconds()
	slices.Sort(took)
	at := func(q float64) float64 {
		if len(took) == 0 {
			return 0
		}
		return float64(took[min(int(q*float64(len(took))), len(took)-1)]) / float64(time.Millisecond)
	}
	f.P50, f.P99, f.P999, f.Max = at(0.5), at(0.99), at(0.999), at(1)
	return f
}

func deliver(ctx context.Context, client *http.Client, url string, n int) error {
	body := fmt.Appendf(nil, `{"id":%q,"status":"succeeded","output":["https://files.example/%d.mp4"],"metrics":{"predict_time":38.2}}`, jobID(n), n)
	req, err := sign.Request(url, body, sign.Standard{ID: fmt.Sprintf("msg_%d", n), Secrets: []string{secret}}, time.Now())
	if err != nil {
		return err
	}
	resp, err := client.Do(req.WithContext(ctx))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is used again
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}
