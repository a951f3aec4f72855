package polltest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jobpoll/jobpoll"
)

const leaseSee = "go doc jobpoll.Leaser"

// storeLeaseChecks try a Leaser.
var storeLeaseChecks = []storeCheck{{
	name: "lease", see: leaseSee, leaser: true,
	why: "two owners poll the same jobs, and none leaves them to nobody",
	run: checkStoreLease,
}, {
	name: "lease-lapses", see: leaseSee, leaser: true,
	why: "an owner that died must not keep the jobs for ever, nor one that lives lose them",
	run: checkStoreLeaseLapses,
}, {
	name: "lease-release", see: leaseSee, leaser: true,
	why: "the next process goes on at once when one ends well",
	run: checkStoreLeaseRelease,
}, {
	name: "lease-race", see: leaseSee, leaser: true,
	why: "several processes start at once",
	run: checkStoreLeaseRace,
}, {
	name: "fence", see: storeSee, leaser: true,
	why: "an owner that was suspended and has been replaced must not write over what its successor knows",
	run: checkStoreFence,
}, {
	name: "fence-whole", see: storeSee, leaser: true,
	why: "a batch that is refused is refused as a whole",
	run: checkStoreFenceWhole,
}, {
	name: "fence-race", see: storeSee, leaser: true,
	why: "a fence that is looked at before the transaction that writes lets the old owner through",
	run: checkStoreFenceRace,
}}

// storeAgainChecks open the same storage twice.
var storeAgainChecks = []storeCheck{{
	name: "again", see: storeSee, again: true,
	why: "what was put must be there for the next process",
	run: checkStoreAgain,
}, {
	name: "again-lease", see: leaseSee, again: true, leaser: true,
	why: "the lease is between processes",
	run: checkStoreAgainLease,
}}

// lease asks for the lease; ok is false where another owner has it.
func (s *storeStage) lease(of jobpoll.Leaser, owner string, ttl time.Duration) (fence uint64, ok bool) {
	tried := fmt.Sprintf("Lease(%q, %v)", owner, ttl)
	err := s.call(tried, func(ctx context.Context) (err error) { fence, err = of.Lease(ctx, owner, ttl); return err })
	if errors.Is(err, jobpoll.ErrNotOwner) {
		return 0, false
	}
	s.must(err == nil, tried, fmt.Sprintf("returned the error %v", err), "a fence, or an error that matches jobpoll.ErrNotOwner")
	return fence, true
}

// take is a lease that must be had.
func (s *storeStage) take(when, owner string, ttl time.Duration) uint64 {
	fence, ok := s.lease(s.leaser, owner, ttl)
	s.must(ok, fmt.Sprintf("Lease(%q) %s", owner, when), "was refused", "the lease")
	s.must(fence != 0, fmt.Sprintf("Lease(%q) %s", owner, when), "gave the fence 0", "one that is not zero")
	return fence
}

// refused is a lease that must not be had.
func (s *storeStage) refused(when, owner string) {
	fence, ok := s.lease(s.leaser, owner, time.Minute)
	s.must(!ok, fmt.Sprintf("Lease(%q) %s", owner, when), fmt.Sprintf("gave the lease, with the fence %d", fence), "an error that matches jobpoll.ErrNotOwner")
}

func checkStoreLease(s *storeStage) {
	first := s.take("of a new store", "a", time.Minute)
	s.refused("while a has it", "b")
	s.refused("while a has it", "")
	s.refused("while a has it", "A")
	s.must(s.take("again", "a", time.Minute) == first, "Lease of the same owner again", "gave another fence", "the same")
}

func checkStoreLeaseLapses(s *storeStage) {
	a := s.take("of a new store", "a", time.Minute)
	s.clock.Advance(50 * time.Second)
	s.must(s.take("to renew it", "a", time.Minute) == a, "Lease of the same owner after 50 s of 60", "gave another fence", "the same")
	s.clock.Advance(50 * time.Second)
	s.refused("50 s after a renewed it for 60 s", "b")
	s.clock.Advance(11 * time.Second)
	b := s.take("61 s after a renewed it for 60 s", "b", time.Minute)
	s.must(b > a, "Lease of another owner", fmt.Sprintf("gave the fence %d after %d", b, a), "a larger one")
	s.refused("after b took over", "a")
	s.clock.Advance(time.Hour)
	again := s.take("that lapsed and nobody took", "b", time.Minute)
	s.must(again == b, "Lease of the same owner after it lapsed, and nobody took it", fmt.Sprintf("gave the fence %d after %d", again, b), "the same")
	s.clock.Advance(time.Hour)
	back := s.take("that b let lapse", "a", time.Minute)
	s.must(back > b, "Lease of an earlier owner", fmt.Sprintf("gave the fence %d after %d", back, b), "a larger one")
}

func checkStoreLeaseRelease(s *storeStage) {
	s.lease(s.leaser, "a", 0) // nobody has it: no error
	a := s.take("of a new store", "a", time.Hour)
	s.lease(s.leaser, "b", 0)
	s.refused("after b released what it did not have", "b")
	for range 2 {
		fence, ok := s.lease(s.leaser, "a", 0)
		if !ok || fence != 0 {
			s.fault("Lease of its owner with a ttl of 0", fmt.Sprintf("gave the fence %d, refused: %v", fence, !ok), "0 and no error")
		}
	}
	s.putFenced("a lease that was released and nobody took", a, true)
	b := s.take("that a released", "b", time.Hour)
	s.must(b > a, "Lease of another owner after a release", fmt.Sprintf("gave the fence %d after %d", b, a), "a larger one")
	s.putFenced("a lease that was released and another took", a, false)
	s.lease(s.leaser, "b", -time.Second)
	c := s.take("that b released with a ttl below 0", "a", time.Hour)
	s.must(c > b, "Lease of an earlier owner after a release", fmt.Sprintf("gave the fence %d after %d", c, b), "a larger one")
}

func checkStoreLeaseRace(s *storeStage) {
	last := uint64(0)
	for round := range 10 {
		var won atomic.Int64
		var fence atomic.Uint64
		err := s.together("many owners that ask for a free lease at once", func(ctx context.Context, n int) error {
			f, err := s.leaser.Lease(ctx, fmt.Sprintf("owner-%d", n), time.Minute)
			switch {
			case errors.Is(err, jobpoll.ErrNotOwner):
				return nil
			case err != nil:
				return err
			}
			won.Add(1)
			fence.Store(f)
			return nil
		})
		tried := fmt.Sprintf("%d owners that ask for a free lease at once", crowdSize)
		s.must(err == nil, tried, fmt.Sprintf("had the error %v", err), "the lease, or jobpoll.ErrNotOwner")
		s.must(won.Load() == 1, tried, fmt.Sprintf("gave it to %d of them", won.Load()), "to one")
		s.must(round == 0 || fence.Load() >= last, tried, "gave a smaller fence than before", "a fence that only grows")
		last = fence.Load()
		s.clock.Advance(2 * time.Minute)
	}
}

// putFenced tries a write under a fence.
func (s *storeStage) putFenced(when string, fence uint64, taken bool) {
	s.writes++
	rec := s.record("fenced", 1, fmt.Sprintf(`{"fence":%d,"write":%d}`, fence, s.writes))
	rec.Fence = fence
	tried := "Put with the fence of " + when
	err := s.call(tried, func(ctx context.Context) error { return s.store.Put(ctx, []jobpoll.Record{rec}) })
	got, ok := s.get("Get", rec.Kind, rec.ID)
	there := ok && string(got.Data) == string(rec.Data)
	switch {
	case taken && (err != nil || !there):
		s.fault(tried, fmt.Sprintf("returned the error %v, written: %v", err, there), "a write like any other")
	case !taken && there:
		s.fault(tried, fmt.Sprintf("wrote it (the error was %v)", err), "nothing written, and an error that matches jobpoll.ErrNotOwner")
	case !taken && !errors.Is(err, jobpoll.ErrNotOwner):
		s.fault(tried, fmt.Sprintf("returned the error %v", err), "an error that matches jobpoll.ErrNotOwner")
	}
	if ok && got.Fence != 0 {
		s.fault(tried+", then Get", fmt.Sprintf("gave the Fence %d", got.Fence), "0: it is not kept")
	}
}

func checkStoreFence(s *storeStage) {
	s.putFenced("none, in a store without a lease", 0, true)
	a := s.take("of a new store", "a", time.Minute)
	s.putFenced("the owner", a, true)
	s.putFenced("none", 0, true)
	s.putFenced("nobody", a+1000, false)
	s.clock.Advance(time.Hour)
	s.putFenced("a lease that lapsed and nobody took", a, true)
	b := s.take("that lapsed", "b", time.Minute)
	s.clock.Advance(time.Second)
	s.putFenced("an owner that was replaced", a, false)
	s.putFenced("the new owner", b, true)
	s.clock.Advance(time.Second)
	s.putFenced("none, while another has the lease", 0, true)
}

func checkStoreFenceWhole(s *storeStage) {
	a := s.take("of a new store", "a", time.Minute)
	kept := s.record("kept", 1, `{}`)
	s.put("Put", kept)
	s.clock.Advance(time.Hour)
	b := s.take("that lapsed", "b", time.Minute)
	good, stale, gone := s.record("good", 1, `{}`), s.record("stale", 1, `{}`), jobpoll.Record{Kind: kept.Kind, ID: kept.ID}
	good.Fence, stale.Fence = b, a
	batch := []jobpoll.Record{gone, good, s.record("free", 1, `{}`), stale}
	err := s.call("Put", func(ctx context.Context) error { return s.store.Put(ctx, batch) })
	tried := "Put of a batch of which one record has the fence of an owner that was replaced"
	if !errors.Is(err, jobpoll.ErrNotOwner) {
		s.fault(tried, fmt.Sprintf("returned the error %v", err), "an error that matches jobpoll.ErrNotOwner")
	}
	for _, rec := range s.load("Load") {
		if rec.ID != "kept" {
			s.fault(tried, fmt.Sprintf("wrote %q", rec.ID), "nothing")
		}
	}
	if _, ok := s.get("Get", kept.Kind, kept.ID); !ok {
		s.fault(tried, "deleted a record", "nothing")
	}
	gone.Fence = a
	err = s.call("Put", func(ctx context.Context) error { return s.store.Put(ctx, []jobpoll.Record{gone}) })
	if _, ok := s.get("Get", kept.Kind, kept.ID); !ok || !errors.Is(err, jobpoll.ErrNotOwner) {
		s.fault("Put that deletes, with the fence of an owner that was replaced", fmt.Sprintf("returned the error %v, deleted: %v", err, !ok), "jobpoll.ErrNotOwner and nothing deleted")
	}
}

// checkStoreFenceRace lets owners replace each other while all of them write.
func checkStoreFenceRace(s *storeStage) {
	tried := "owners that replace each other while the old one goes on writing"
	for round := range 10 {
		old := s.take("that lapsed", fmt.Sprintf("old-%d", round), time.Minute)
		var successor atomic.Uint64
		ready := make(chan struct{})
		err := s.together(tried, func(ctx context.Context, n int) error {
			if n == 0 {
				<-ready
				s.clock.Advance(2 * time.Minute)
				f, err := s.leaser.Lease(ctx, fmt.Sprintf("new-%d", round), time.Minute)
				if err != nil {
					return fmt.Errorf("Lease: %w", err)
				}
				rec := s.record("shared", f, `"new"`)
				rec.Fence = f
				if err := s.store.Put(ctx, []jobpoll.Record{rec}); err != nil {
					return fmt.Errorf("Put of the new owner: %w", err)
				}
				successor.Store(f)
				return nil
			}
			for i := range 30 {
				if n == 1 && i == 3 {
					close(ready)
				}
				rec := s.record("shared", old, `"old"`)
				rec.Fence = old
				if err := s.store.Put(ctx, []jobpoll.Record{rec}); err != nil && !errors.Is(err, jobpoll.ErrNotOwner) {
					return fmt.Errorf("Put of the old owner: %w", err)
				}
			}
			return nil
		})
		s.must(err == nil, tried, fmt.Sprint(err), "jobpoll.ErrNotOwner for the old one, and no other error")
		got, ok := s.get("Get", jobpoll.RecordJob, "shared")
		s.must(ok && got.Rev == successor.Load(), tried, fmt.Sprintf("left the record of the fence %d, after that of %d was written", got.Rev, successor.Load()),
			"what the new owner wrote")
		s.clock.Advance(2 * time.Minute)
	}
}

// second opens the storage once more.
func (s *storeStage) second() (jobpoll.Store, func()) {
	other, err := s.kit.Again(s.store)
	s.must(err == nil && other != nil, "Stores.Again", fmt.Sprintf("returned the error %v", err), "a store")
	return other, func() {
		if err := s.closeStore(other); err != nil {
			s.fault("Stores.Close of what Again gave", err.Error(), "no error")
		}
	}
}

func checkStoreAgain(s *storeStage) {
	rec := s.record("a", 1, `{"a":1}`)
	s.put("Put", rec, s.record("b", 1, `{}`))
	other, end := s.second()
	defer end()
	mine := s.store
	s.store = other
	got, ok := s.get("Get of a second process", rec.Kind, rec.ID)
	s.must(ok, "Put of one process, then Get of another", "told that there is none", "the record")
	s.same("Put of one process, then Get of another", rec, got)
	gone := rec
	gone.Data = nil
	s.put("Put of the other process", gone, s.record("c", 1, `{}`))
	s.store = mine
	if n := len(s.load("Load")); n != 2 {
		s.fault("Put and deletion of another process, then Load", fmt.Sprintf("gave %d records", n), "2")
	}
}

func checkStoreAgainLease(s *storeStage) {
	other, end := s.second()
	defer end()
	theirs, ok := other.(jobpoll.Leaser)
	s.must(ok, "Stores.Again", "gave a store that is no jobpoll.Leaser", "one like the first")
	a := s.take("of a new store", "a", time.Minute)
	_, ok = s.lease(theirs, "b", time.Minute)
	s.must(!ok, "Lease of another process while one has it", "gave it to both", "jobpoll.ErrNotOwner")
	s.clock.Advance(time.Hour)
	b, ok := s.lease(theirs, "b", time.Minute)
	s.must(ok && b > a, "Lease of another process after it lapsed", fmt.Sprintf("had it: %v, fence %d after %d", ok, b, a), "the lease and a larger fence")
	s.putFenced("a process that was replaced by another", a, false)
}
