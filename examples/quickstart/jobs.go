package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/provider"
)

// class is a kind of job by how long it takes: log-normal around its median.
type class struct {
	name     string
	expected time.Duration // what a service would say of it before it has measured
	median   float64       // seconds
	spread   float64
	min, max float64
}

var classes = []class{
	{name: "preview", expected: 20 * time.Second, median: 18, spread: 0.35, min: 5, max: 29.9},
	{name: "standard", expected: time.Minute, median: 50, spread: 0.3, min: 30, max: 120},
	{name: "long", expected: 4 * time.Minute, median: 260, spread: 0.45, min: 120, max: 600},
}

// fate is what becomes of a job at the provider.
type fate int

const (
	succeeds fate = iota
	fails
	isFiltered
	isForgotten // a 404 from some time on
	hangs       // never ends
)

// fates of the jobs that do not simply succeed, by their number.
var fates = map[int]fate{2: hangs, 4: fails, 5: isForgotten, 8: isFiltered}

// order is one job, before anybody has submitted it.
type order struct {
	n        int // from 1 on
	class    int
	provider string
	fate     fate
	arrives  time.Duration // after the start
	takes    time.Duration // from the submission to its end
}

// draw makes n orders. The same seed makes the same.
func draw(seed uint64, n int, providers []string) []order {
	r := rand.New(rand.NewPCG(seed, 0))
	orders := make([]order, n)
	for i := range orders {
		o := &orders[i]
		*o = order{n: i + 1, class: i % len(classes), provider: providers[i/len(classes)%len(providers)], fate: fates[i+1]}
		o.arrives = time.Duration(i)*arrivalGap + time.Duration(r.Int64N(int64(arrivalGap)))
		o.takes = classes[o.class].draw(r)
	}
	return orders
}

const arrivalGap = 500 * time.Millisecond

func (c class) draw(r *rand.Rand) time.Duration {
	for {
		seconds := c.median * math.Exp(c.spread*r.NormFloat64())
		if seconds >= c.min && seconds <= c.max {
			return time.Duration(seconds*10) * (time.Second / 10)
		}
	}
}

// script is what the provider tells of the job, as package polltest reads it.
func (o order) script() string {
	part := func(share float64) time.Duration {
		return time.Duration(share * float64(o.takes)).Round(time.Second / 10)
	}
	text := fmt.Sprintf("queued pos 2; at %v running 10%%; at %v running 60%%; ", part(0.1), part(0.4))
	switch o.fate {
	case hangs:
		return text
	case isForgotten:
		return text + fmt.Sprintf("at %v 404", part(0.5))
	case fails:
		return text + fmt.Sprintf(`at %v failed fault "the renderer ran out of memory"`, o.takes)
	case isFiltered:
		return text + fmt.Sprintf(`at %v failed filtered "the result was held back"`, o.takes)
	}
	return text + fmt.Sprintf("at %v succeeded", o.takes)
}

// ends reports whether the provider tells an end.
func (o order) ends() bool { return o.fate != hangs && o.fate != isForgotten }

// reason is why jobpoll should stop to watch it.
func (o order) reason() jobpoll.Reason {
	switch o.fate {
	case fails, isFiltered:
		return jobpoll.ReasonFailed
	case isForgotten:
		return jobpoll.ReasonLost
	case hangs:
		return jobpoll.ReasonProcessingLimit
	}
	return jobpoll.ReasonSucceeded
}

// key is the caller's own id of the job.
func (o order) key() string { return fmt.Sprintf("order-%d", o.n) }

// submission is what the provider is asked for. The seed tells its script which
// job it is.
func (o order) submission() provider.Order {
	k := kinds[o.provider]
	s := provider.Order{Path: k.path, Model: "acme/video-" + classes[o.class].name}
	if k.form {
		s.Input = provider.Form{
			Fields: url.Values{"seed": {strconv.Itoa(o.n)}},
			Files:  []provider.File{{Field: "image", Name: "cat.png", Content: []byte("a cat on a train")}},
		}
		return s
	}
	s.Input = map[string]any{"prompt": "a cat on a train", "seed": o.n}
	return s
}

// numberOf is the number of the order in the body of a submission.
func numberOf(body json.RawMessage) int {
	var sent struct {
		Seed  json.Number // of a form it is a text
		Input struct{ Seed json.Number }
	}
	_ = json.Unmarshal(body, &sent) // another shape: no such order
	n, _ := strconv.Atoi(cmp.Or(sent.Seed, sent.Input.Seed).String())
	return n
}
