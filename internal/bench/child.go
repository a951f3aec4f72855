package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// order is what one child process has to measure.
type order struct {
	Contender string
	Load      load
	// Warm is the time from the first look that is due to the begin of the
	// measurement, Duration how long that lasts.
	Warm, Duration time.Duration
	Burst, Peak    bool
	// CPUProfile is a file for a profile of the measurement, if not empty.
	CPUProfile string `json:",omitempty"`
}

// orderEnv holds the order of a child process, as JSON.
const orderEnv = "JOBPOLL_BENCH_ORDER"

// inChild measures in a process of its own, so that no contender finds the heap,
// the timers or the goroutines of another.
func inChild(ctx context.Context, o order) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute+o.Load.Lead+o.Warm+burstFactor*o.Duration)
	defer cancel()
	text, err := json.Marshal(o)
	if err != nil {
		return result{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), orderEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = &out, &said
	stalls, halt := watchMachine()
	err = cmd.Run()
	halt()
	if err != nil {
		return result{}, fmt.Errorf("%s: %w\n%s", o.Contender, err, tail(said.String(), 4000))
	}
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return result{}, fmt.Errorf("%s: %w", o.Contender, err)
	}
	r.StallMs = stalls.counts().quantile(1)
	return r, nil
}

// watchMachine notes, until halt is called, how late a ticker of this process
// is, which has nothing else to do: what is late here is late there as well.
func watchMachine() (stalls *histogram, halt func()) {
	var over atomic.Bool
	var ticking sync.WaitGroup
	stalls = newHistogram()
	ticking.Go(func() { tickUntil(&over, stallPeriod, stalls) })
	return stalls, func() {
		over.Store(true)
		ticking.Wait()
	}
}

const stallPeriod = 20 * time.Millisecond

// tail is the end of a text, or its begin and its end where it is long: a trace
// of a million goroutines tells most in its first lines.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n/2] + "\n…\n" + s[len(s)-n/2:]
}

// obey is the child's side.
func obey(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	c, err := contenderNamed(o.Contender)
	if err != nil {
		return err
	}
	measure := measureSteady
	if o.Burst {
		measure = measureBurst
	}
	return json.NewEncoder(os.Stdout).Encode(measure(c, o))
}
