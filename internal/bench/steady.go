package main

import (
	"math"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"
)

// result is what was measured of one contender in one run.
type result struct {
	Contender string `json:"contender"`
	Jobs      int    `json:"jobs"`
	// BytesPerJob is heap in objects and stacks in use, after collection.
	BytesPerJob float64 `json:"bytes_per_job"`
	// LookNs is CPU of the whole process a look, AdmitUs a job.
	LookNs  float64 `json:"look_ns"`
	AdmitUs float64 `json:"admit_us"`
	// GCMs is CPU of one forced collection.
	GCMs float64 `json:"gc_ms"`
	// Late is the start of a look minus its planned instant.
	LateP50Ms float64 `json:"late_p50_ms"`
	LateP99Ms float64 `json:"late_p99_ms"`
	LateMaxMs float64 `json:"late_max_ms"`
	// EarlyMs is how much too early a look was at most.
	EarlyMs    float64 `json:"early_ms"`
	Goroutines int     `json:"goroutines"`
	LooksPerS  float64 `json:"looks_per_s"`
	// Unseen is how many jobs were not looked at at all.
	Unseen int `json:"unseen"`
	// Overran tells that the admission lasted into the first looks, so that
	// AdmitUs has some of their CPU in it.
	Overran bool `json:"overran,omitempty"`
	// StallMs is how late an idle process beside it was at most.
	StallMs float64 `json:"stall_ms"`
	Burst   *burst  `json:"burst,omitempty"`
}

// admitBatches is in how many parts the jobs are admitted. The parts are spread
// over the lead, since a first look lies at most one interval after the
// admission of its job and the last of them at the end of that interval.
const admitBatches = 100

// admitAll admits all jobs. It returns the CPU that the process took for it,
// with all that it did meanwhile on its own goroutines but without what it takes
// when it has no jobs, and whether there was too little time.
func admitAll(m *meter, w way) (cpu time.Duration, overran bool) {
	lead := int64(m.Lead)
	begun, atBegin := m.now(), cpuUsed()
	m.sleepUntil(lead / 4)
	ready, before := m.now(), cpuUsed()
	for b := range admitBatches {
		m.sleepUntil(lead/4 + lead*3/4*int64(b+1)/(admitBatches+2))
		for i := m.Jobs * b / admitBatches; i < m.Jobs*(b+1)/admitBatches; i++ {
			w.admit(idOf(i), m.first(i))
		}
	}
	overran = m.now() > lead
	m.sleepUntil(lead)
	idle := float64(before-atBegin) / float64(ready-begun)
	return max(0, cpuUsed()-before-time.Duration(idle*float64(m.now()-ready))), overran
}

// measureSteady admits the jobs, lets them come to a steady state, and measures.
func measureSteady(c contender, o order) result {
	m := newMeter(o.Load)
	collect()
	collect()
	memory, goroutines := memoryUsed(), runtime.NumGoroutine()
	m.begin = time.Now()
	w := c.start(m)
	cpu, overran := admitAll(m, w)
	r := result{Contender: c.name, Jobs: m.Jobs, Overran: overran, AdmitUs: micros(cpu) / float64(m.Jobs)}

	time.Sleep(o.Warm)
	endProfile := startProfile(o.CPUProfile)
	late, begun, cpu := m.late.counts(), m.now(), cpuUsed()
	r.Goroutines = mostGoroutines(o.Duration, 50*time.Millisecond) - goroutines
	cpu, took, late := cpuUsed()-cpu, m.now()-begun, m.late.counts().since(late)
	endProfile()
	looks := float64(max(late.total(), 1))
	r.LookNs = float64(cpu) / looks
	r.LooksPerS = looks / (float64(took) / 1e9)
	r.LateP50Ms, r.LateP99Ms, r.LateMaxMs = late.quantile(0.5), late.quantile(0.99), late.quantile(1)
	r.EarlyMs = float64(m.late.early.Load()) / 1e6

	r.Unseen = m.unseen()
	if o.Peak {
		return r // a process that is that busy may not end a collection
	}
	var collections []float64
	for range 3 { // the first also shrinks stacks
		collections = append(collections, micros(collect())/1e3)
	}
	r.BytesPerJob = float64(memoryUsed()-memory) / float64(m.Jobs)
	slices.Sort(collections)
	r.GCMs = collections[1]
	return r
}

// startProfile begins a CPU profile, and gives what ends it. It costs some of
// what is measured.
func startProfile(file string) (end func()) {
	if file == "" {
		return func() {}
	}
	f, err := os.Create(file)
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	exitOn(err)
	return func() {
		pprof.StopCPUProfile()
		exitOn(f.Close())
	}
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

// mostGoroutines waits for d and tells the most goroutines that there were
// meanwhile, counted once in each period.
func mostGoroutines(d, period time.Duration) int {
	_, most := someGoroutines(d, period)
	return most
}

// someGoroutines is mostGoroutines with the least too.
func someGoroutines(d, period time.Duration) (least, most int) {
	least = math.MaxInt
	for end := time.Now().Add(d); ; {
		n := runtime.NumGoroutine()
		least, most = min(least, n), max(most, n)
		left := time.Until(end)
		if left <= 0 {
			return least, most
		}
		time.Sleep(min(left, period))
	}
}
