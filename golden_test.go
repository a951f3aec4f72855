package jobpoll

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/schedules anew")

// classes are the rows of the table, each with a job of it.
var classes = []struct {
	name     string
	expected time.Duration
	real     time.Duration // how long it takes
}{
	{"preview", 12 * sec, 12 * sec},
	{"standard", mnt, mnt},
	{"long", 5 * mnt, 5 * mnt},
	{"beyond", 20 * mnt, 20 * mnt},
	{"unknown", 0, 90 * sec},
}

// scenarios are ways in which a job of a real duration answers, and how it ends.
var scenarios = []struct {
	name string
	make func(total time.Duration) provider
	want Reason
}{
	{"silent", func(time.Duration) provider { return script(StateRunning) }, ReasonDeadline},
	{"queued, then running", func(total time.Duration) provider {
		return until(total, func(_ int, age time.Duration) (Report, error) {
			if age < total*2/5 {
				return Report{State: StateQueued}, nil
			}
			return Report{State: StateRunning}, nil
		})
	}, ReasonSucceeded},
	{"with ETA", func(total time.Duration) provider {
		return until(total, func(_ int, age time.Duration) (Report, error) {
			return Report{State: StateRunning, Remaining: total - age}, nil
		})
	}, ReasonSucceeded},
	{"with progress", func(total time.Duration) provider {
		return until(total, func(_ int, age time.Duration) (Report, error) {
			return Report{State: StateRunning, Progress: float64(20*age/total) / 20}, nil
		})
	}, ReasonSucceeded},
	{"429 in the middle", func(total time.Duration) provider {
		return middle(total, limited(20*sec), limited(0))
	}, ReasonSucceeded},
	{"errors in the middle", func(total time.Duration) provider {
		return middle(total, errPlain, errPlain, errPlain)
	}, ReasonSucceeded},
}

// middle fails like this from half the time on, and then goes on well.
func middle(total time.Duration, errs ...error) provider {
	failed := 0
	return func(_ int, age time.Duration) (Report, error) {
		switch {
		case age >= total/2 && failed < len(errs):
			failed++
			return Report{}, errs[failed-1]
		case age >= total:
			return Report{State: StateSucceeded}, nil
		}
		return Report{State: StateRunning}, nil
	}
}

// seeded is a source of jitter that is the same in every run.
func seeded(seed uint64) func() float64 { return rand.New(rand.NewPCG(seed, 0)).Float64 }

func render(r result) string {
	var b strings.Builder
	for _, l := range r.looks {
		fmt.Fprintf(&b, "%10.3f %9.3f  %-9s %s\n", l.age.Seconds(), l.gap.Seconds(), l.cause, l.told)
	}
	fmt.Fprintf(&b, "%10.3f            %s\n", r.endAge.Seconds(), r.end.Stop.String())
	return b.String()
}

func TestGoldenSchedules(t *testing.T) {
	for _, c := range classes {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			fmt.Fprintf(&b, "# expected %v: age, gap (seconds), cause of the look, what it told\n", c.expected)
			for _, s := range scenarios {
				for _, rnd := range []struct {
					name string
					f    func() float64
				}{{"Rand 0.5", always(0.5)}, {"seeded", seeded(1)}} {
					r := game{expected: c.expected, rand: rnd.f, provider: s.make(c.real)}.play(t)
					fmt.Fprintf(&b, "\n## %s, %s\n%s", s.name, rnd.name, render(r))
				}
			}
			compare(t, c.name+".golden", b.String())
		})
	}
}

// The table of the README is made from the same code.
func TestTableOfTheREADME(t *testing.T) {
	var b strings.Builder
	b.WriteString("| expected |")
	for _, s := range scenarios {
		b.WriteString(" " + s.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(scenarios)) + "\n")
	for _, c := range classes {
		name := strings.TrimSuffix(c.expected.String(), "0s")
		if c.expected == 0 {
			name = "unknown (takes " + c.real.String() + ")"
		}
		b.WriteString("| " + name + " |")
		for _, s := range scenarios {
			r := game{expected: c.expected, rand: always(0.5), provider: s.make(c.real)}.play(t)
			var ages []string
			for i, a := range r.ages() {
				if i == 6 {
					ages = append(ages, "…")
					break
				}
				ages = append(ages, fmt.Sprintf("%.0f", a.Seconds()))
			}
			b.WriteString(" " + strings.Join(ages, ", ") + " |")
		}
		b.WriteString("\n")
	}
	compare(t, "README_table.md", b.String())
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "schedules", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test -run %s -update", t.Name())
	require.Equal(t, string(want), got, "if this is meant, run go test -update and read the diff")
}

// What no -update can change.
func TestInvariantsOfTheSchedules(t *testing.T) {
	for _, c := range classes {
		for _, s := range scenarios {
			t.Run(c.name+", "+s.name, func(t *testing.T) {
				for seed := range uint64(60) {
					g := game{expected: c.expected, id: fmt.Sprint("job-", seed), rand: seeded(seed), provider: s.make(c.real)}
					switch seed {
					case 0, 1, 2:
						g.rand = always(draws[seed])
					}
					r := g.play(t)
					require.Equal(t, s.want, r.end.Stop)
					require.Less(t, len(r.looks), 300)
					row := (&Schedule{}).bucket(c.expected, 0)
					require.GreaterOrEqual(t, r.looks[0].age, row.First.Min*4/5)
					require.LessOrEqual(t, r.looks[0].age, row.First.Max*6/5)
					for i, l := range r.looks[1:] {
						before := r.looks[i]
						require.GreaterOrEqual(t, l.gap, DefaultMinDelay)
						if before.track.ErrorKind == ErrorRateLimited {
							require.GreaterOrEqual(t, l.age, l.floor, "a wait of the provider is a floor")
							require.LessOrEqual(t, l.age, l.floor+row.First.Max/5, "and little more")
							continue
						}
						require.LessOrEqual(t, l.gap, (&Schedule{}).bucket(c.expected, before.age).Later.Max, "no gap over the cap")
						if before.told == "queued" {
							require.Equal(t, CauseQueued, l.cause)
							require.GreaterOrEqual(t, l.gap, row.Later.Min*4/5, "queued is slow")
						}
					}
					if s.want == ReasonSucceeded {
						last := r.looks[len(r.looks)-1]
						require.Equal(t, last.age, r.endAge, "seen at the last look")
					}

					// Before jitter, growth never falls while nothing changes.
					g.schedule.Jitter, g.provider = NoJitter, s.make(c.real)
					plain := g.play(t)
					for i, l := range plain.looks[1:] {
						before := plain.looks[i]
						if l.cause == CauseBackoff && (before.cause == CauseBackoff || before.cause == CauseFirst) && before.track.Unchanged > 1 {
							require.GreaterOrEqual(t, l.gap, before.gap)
						}
						if l.cause == CauseError && before.cause == CauseError {
							require.GreaterOrEqual(t, l.gap, before.gap)
						}
					}
				}
			})
		}
	}
}
