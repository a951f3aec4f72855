package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest/loopback"
	"github.com/jobpoll/jobpoll/provider"
)

// vendor is one provider: its server on a loopback port, and an adapter for it.
type vendor struct {
	name    string
	server  *loopback.Server
	adapter adapter
	refused atomic.Int64 // requests, while it was busy
}

// adapter is what the adapters of package provider have in common.
type adapter interface {
	jobpoll.Checker
	Submit(context.Context, provider.Order) (jobpoll.Job, jobpoll.Report, error)
}

// What an account may do at one provider, in calls a second, and when one of
// them lets nobody in.
var published = loopback.RateLimit{PerSecond: 5, Burst: 5}

const (
	busyFrom  = 20 * time.Second
	busyUntil = 40 * time.Second
)

// startVendors serves the orders at each provider. Two sets made from the same
// orders and clock do the same. Close them in the end.
func startVendors(names []string, orders []order, clock fastClock) ([]*vendor, error) {
	var all []*vendor
	for _, name := range names {
		v := &vendor{name: name}
		secret := name + "-secret"
		cfg := loopback.Config{
			Clock:      clock,
			Credential: secret,
			Total:      published,
			Retry:      loopback.RetryDate,
			Script: func(_ int, body json.RawMessage) string {
				n := numberOf(body)
				if n < 1 || n > len(orders) {
					return fmt.Sprintf("there is no order %d", n)
				}
				return orders[n-1].script()
			},
		}
		if name == busyOne(names) {
			cfg.Fault = func(int, *http.Request) loopback.Fault {
				now := clock.since()
				if now < busyFrom || now >= busyUntil {
					return loopback.Fault{}
				}
				v.refused.Add(1)
				return loopback.Fault{Status: http.StatusTooManyRequests, RetryAfter: busyUntil - now, Before: true}
			}
		}
		at := provider.Config{Credentials: provider.Secret(secret), Clock: clock, Timeout: clock.real(provider.DefaultTimeout)}
		k := kinds[name]
		if cfg.Wire = k.wire(); name == "replicate" {
			cfg.Wire = forgetful{cfg.Wire, orders}
		}
		v.server = loopback.Start(cfg)
		at.BaseURL = v.server.URL() + k.base
		var err error
		v.adapter, err = k.adapter(at)
		all = append(all, v)
		if err != nil {
			closeAll(all)
			return nil, err
		}
	}
	return all, nil
}

// busyOne is the provider that lets nobody in for a while.
func busyOne(names []string) string { return names[min(1, len(names)-1)] }

func closeAll(all []*vendor) {
	for _, v := range all {
		v.server.Close()
	}
}

// of is the provider of an order.
func of(all []*vendor, o order) *vendor {
	return all[slices.IndexFunc(all, func(v *vendor) bool { return v.name == o.provider })]
}

// forgetful is a wire whose list has no forgotten jobs either.
type forgetful struct {
	loopback.Wire
	orders []order
}

func (w forgetful) Write(r loopback.Reply) loopback.Answer {
	r.Page = slices.DeleteFunc(slices.Clone(r.Page), func(v loopback.View) bool {
		n := numberOf(v.Input)
		return n >= 1 && n <= len(w.orders) && w.orders[n-1].fate == isForgotten
	})
	return w.Wire.Write(r)
}
