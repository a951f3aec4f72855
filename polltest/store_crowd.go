package polltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobpoll/jobpoll"
)

// storeLoadChecks try Load.
var storeLoadChecks = []storeCheck{{
	name: "load", see: storeSee,
	why: "a job that Load leaves out is not polled after a restart, one that it gives twice is polled twice",
	run: checkStoreLoad,
}, {
	name: "load-left", see: storeSee,
	why: "a loop over Load that is left early must not hold a connection or a lock for ever",
	run: checkStoreLoadLeft,
}, {
	name: "load-inside", see: storeSee,
	why: "jobs go on, and are stored, while the rest is still being restored",
	run: checkStoreLoadInside,
}, {
	name: "load-context", see: storeSee,
	why: "a Load that ends early without an error is taken for all that there is",
	run: checkStoreLoadContext,
}}

// storeCrowdChecks try many calls at once.
var storeCrowdChecks = []storeCheck{{
	name: "many-at-once", see: storeSee,
	why: "many jobs are stored at once",
	run: checkStoreManyAtOnce,
}, {
	name: "load-while-writing", see: storeSee,
	why: "a restore must not miss a job because others are written meanwhile",
	run: checkStoreLoadWhileWriting,
}, {
	name: "atomic", see: storeSee,
	why: "a batch of which a part is written tells two stories at once",
	run: checkStoreAtomic,
}}

// loadCount is more than fits one page or one packet of most stores.
const loadCount = 3000

// fill puts count records in batches.
func (s *storeStage) fill(count int) {
	for from := 0; from < count; from += 128 {
		var batch []jobpoll.Record
		for i := from; i < min(from+128, count); i++ {
			batch = append(batch, s.record(fmt.Sprintf("job-%05d", i), 1, fmt.Sprintf(`{"n":%d}`, i)))
		}
		s.put("Put of a batch", batch...)
	}
}

func checkStoreLoad(s *storeStage) {
	if n := len(s.load("Load of an empty store")); n != 0 {
		s.fault("Load of an empty store", fmt.Sprintf("gave %d records", n), "none")
	}
	s.fill(loadCount)
	for range 2 { // an iterator of a new call begins anew
		seen := map[string]int{}
		for _, rec := range s.load("Load") {
			seen[rec.ID]++
		}
		for id, n := range seen {
			s.must(n == 1, fmt.Sprintf("Put of %d records, then Load", loadCount), fmt.Sprintf("gave %q %d times", id, n), "each once")
		}
		s.must(len(seen) == loadCount, fmt.Sprintf("Put of %d records, then Load", loadCount), fmt.Sprintf("gave %d", len(seen)), "all")
	}
}

func checkStoreLoadLeft(s *storeStage) {
	s.fill(500)
	for i := range 64 {
		err := s.call("a loop over Load that is left after a record", func(ctx context.Context) error {
			for _, err := range s.store.Load(ctx) {
				return err
			}
			return errors.New("it gave nothing")
		})
		s.must(err == nil, "a loop over Load that is left after a record", fmt.Sprintf("had the error %v, the time number %d", err, i+1), "no error")
	}
	s.put("Put after loops over Load that were left", s.record("after", 1, `{}`))
}

func checkStoreLoadInside(s *storeStage) {
	s.fill(300)
	n := 0
	err := s.call("Put, Get and Load in a loop over Load", func(ctx context.Context) error {
		for rec, err := range s.store.Load(ctx) {
			if err != nil {
				return err
			}
			if n++; n%100 != 1 {
				continue
			}
			if _, err := s.store.Get(ctx, rec.Kind, rec.ID); err != nil {
				return fmt.Errorf("Get: %w", err)
			}
			rec.Rev++
			if err := s.store.Put(ctx, []jobpoll.Record{rec}); err != nil {
				return fmt.Errorf("Put: %w", err)
			}
			for _, err := range s.store.Load(ctx) {
				if err != nil {
					return fmt.Errorf("Load: %w", err)
				}
				break
			}
		}
		return nil
	})
	if err != nil || n != 300 {
		s.fault("Put, Get and Load in a loop over Load of 300 records", fmt.Sprintf("had the error %v after %d", err, n), "all records and no error")
	}
}

func checkStoreLoadContext(s *storeStage) {
	s.fill(loadCount)
	n, errs, after := 0, 0, 0
	err := s.call("Load, of which the context ends meanwhile", func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for _, err := range s.store.Load(ctx) {
			switch {
			case err != nil:
				errs++
			case errs > 0:
				after++
			default:
				if n++; n == 10 {
					cancel()
				}
			}
		}
		return nil
	})
	s.must(err == nil, "Load, of which the context ends meanwhile", fmt.Sprint(err), "an end")
	if n < loadCount && errs == 0 {
		s.fault("Load, of which the context ends after 10 records", fmt.Sprintf("ended after %d of %d records without an error", n, loadCount), "an error, or all records")
	}
	if errs > 1 || after > 0 {
		s.fault("Load, of which the context ends after 10 records", fmt.Sprintf("gave %d errors, and %d records after one", errs, after), "an error as the last pair")
	}
}

// crowdSize is how many goroutines call at once.
const crowdSize = 16

// together runs f on many goroutines at once and returns the first error.
func (s *storeStage) together(tried string, f func(ctx context.Context, n int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, crowdSize)
	hung := make([]bool, crowdSize)
	for n := range crowdSize {
		wg.Go(func() {
			errs[n], hung[n] = s.attempt(context.Background(), func(ctx context.Context) error { return f(ctx, n) })
		})
	}
	wg.Wait()
	for n := range crowdSize {
		if hung[n] {
			s.fault(tried, "did not return", "no call that hangs")
			panic(storeStop{hung: true})
		}
	}
	return errors.Join(errs...)
}

func checkStoreManyAtOnce(s *storeStage) {
	tried := fmt.Sprintf("%d goroutines, each with Put and Get of keys of its own and of one that all share", crowdSize)
	err := s.together(tried, func(ctx context.Context, n int) error {
		for rev := uint64(1); rev <= 20; rev++ {
			own := s.record(fmt.Sprintf("own-%d", n), rev, fmt.Sprintf(`{"of":%d,"rev":%d}`, n, rev))
			shared := s.record("shared", uint64(n+1), fmt.Sprintf(`{"of":%d}`, n+1))
			batch := []jobpoll.Record{own, shared}
			if n%2 == 1 { // two orders: a store must not lock itself out
				batch = []jobpoll.Record{shared, own}
			}
			if err := s.store.Put(ctx, batch); err != nil {
				return fmt.Errorf("Put: %w", err)
			}
			got, err := s.store.Get(ctx, own.Kind, own.ID)
			if err != nil {
				return fmt.Errorf("Get: %w", err)
			}
			if diff := recordDiff(own, got); diff != "" {
				return fmt.Errorf("Get after Put gave %s", diff)
			}
			if got, err = s.store.Get(ctx, shared.Kind, shared.ID); err != nil {
				return fmt.Errorf("Get: %w", err)
			}
			if want := fmt.Sprintf(`{"of":%d}`, got.Rev); string(got.Data) != want {
				return fmt.Errorf("the record that all put has the Rev %d and the Data %s: half of two", got.Rev, clip(string(got.Data)))
			}
		}
		return nil
	})
	if err != nil {
		s.fault(tried, err.Error(), "each sees what it put, and no error")
	}
	if n := len(s.load("Load")); n != crowdSize+1 {
		s.fault(tried+", then Load", fmt.Sprintf("gave %d records", n), fmt.Sprint(crowdSize+1))
	}
}

func checkStoreLoadWhileWriting(s *storeStage) {
	s.fill(1000)
	var over atomic.Bool
	var wg sync.WaitGroup
	var writing error
	wg.Go(func() {
		for rev := uint64(2); !over.Load(); rev++ {
			var batch []jobpoll.Record
			for i := range 16 {
				id := int(rev)*16%1000 + i
				batch = append(batch, s.record(fmt.Sprintf("job-%05d", id%1000), rev, fmt.Sprintf(`{"n":%d}`, id%1000)))
			}
			batch = append(batch, s.record(fmt.Sprintf("new-%d", rev), 1, `{}`), jobpoll.Record{Kind: jobpoll.RecordJob, ID: fmt.Sprintf("new-%d", rev-1)})
			if err, _ := s.attempt(context.Background(), func(ctx context.Context) error { return s.store.Put(ctx, batch) }); err != nil {
				writing = err
				return
			}
		}
	})
	end := func() { over.Store(true); wg.Wait() }
	defer end()
	for range 5 {
		seen := map[string]int{}
		for _, rec := range s.load("Load while others write") {
			if rec.ID[0] == 'j' {
				seen[rec.ID]++
				s.must(string(rec.Data) == fmt.Sprintf(`{"n":%d}`, number(rec.ID)), "Load while others write",
					fmt.Sprintf("gave %q with the Data %s", rec.ID, clip(string(rec.Data))), "whole records")
			}
		}
		for id, n := range seen {
			s.must(n == 1, "Load while others write", fmt.Sprintf("gave %q %d times", id, n), "each record once")
		}
		s.must(len(seen) == 1000, "Load while others write the same records anew", fmt.Sprintf("gave %d of 1000", len(seen)), "all that are there all the time")
	}
	end()
	s.must(writing == nil, "Put while others Load", fmt.Sprintf("returned the error %v", writing), "no error")
}

// number is that in "job-00042".
func number(id string) (n int) {
	_, _ = fmt.Sscanf(id, "job-%d", &n)
	return n
}

// checkStoreAtomic cuts Puts off at all moments.
func checkStoreAtomic(s *storeStage) {
	const size = 100
	for round := range 40 {
		batch := make([]jobpoll.Record, size)
		for i := range batch {
			batch[i] = s.record(fmt.Sprintf("r%d-%d", round, i), 1, `{}`)
		}
		err := s.call("Put of a batch, of which the context ends meanwhile", func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Duration(round)*100*time.Microsecond)
			defer cancel()
			return s.store.Put(ctx, batch)
		})
		n := 0
		for _, rec := range batch {
			if _, ok := s.get("Get", rec.Kind, rec.ID); ok {
				n++
			}
			if n == 0 && rec.ID == batch[9].ID {
				break // a part would have begun by now, or ended
			}
		}
		if err == nil && n != size || n != 0 && n != size {
			s.fault(fmt.Sprintf("Put of a batch of %d, of which the context ends meanwhile", size),
				fmt.Sprintf("returned the error %v, and %d of the records are there", err, n), "all of them, or with an error none")
			return
		}
	}
}
