package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll/internal/sim"
)

// What a file may hold at most. More profiles than that are ids of jobs, put
// into the wrong column.
const (
	maxProfiles = 2000
	maxJobs     = 2_000_000
	maxTakes    = 7 * 24 * 3600 // seconds
	maxNameLen  = 200
)

// population is what is played: jobs in the order in which they were
// submitted, and of each profile how its durations are distributed.
type population struct {
	set  sim.Set
	jobs []sim.Job
	// warning is what looks wrong with the durations, and may be right.
	warning string
}

// read takes durations from CSV, one job a line in the order of time: a
// duration, or a profile and a duration. Durations are numbers, in the unit, or
// such as 1m30s. Lines that begin with # and a first line of titles are left
// out.
func read(r io.Reader, unit time.Duration) (population, error) {
	rows := csv.NewReader(withoutMark(r))
	rows.FieldsPerRecord, rows.Comment, rows.TrimLeadingSpace, rows.ReuseRecord = -1, '#', true, true
	var p population
	durations, places := [][]float64{}, map[string]int{}
	for first := true; ; first = false {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return p, err // names the line
		}
		line, _ := rows.FieldPos(0)
		name, takes, err := job(row, unit)
		if err != nil {
			if first && title(row) {
				continue
			}
			return p, fmt.Errorf("line %d: %w", line, err)
		}
		k, known := places[name]
		if !known {
			if k = len(places); k == maxProfiles {
				return p, fmt.Errorf("line %d: more than %d profiles: the first column must name what is alike, a model and its settings, and not a job", line, maxProfiles)
			}
			name = strings.Clone(name)
			places[name] = k
			p.set.Profiles = append(p.set.Profiles, sim.Profile{Name: name})
			durations = append(durations, nil)
		}
		if len(p.jobs) == maxJobs {
			return p, fmt.Errorf("line %d: more than %d jobs: play a part of them", line, maxJobs)
		}
		durations[k] = append(durations[k], takes)
		p.jobs = append(p.jobs, sim.Job{Profile: k, Name: p.set.Profiles[k].Name, Takes: sim.Seconds(takes)})
	}
	if len(p.jobs) == 0 {
		return p, errors.New("there is no duration in it")
	}
	for k, all := range durations {
		d := sim.NewSample(all)
		q := &p.set.Profiles[k]
		q.Dist, q.Weight, q.Expected = d, float64(len(all)), d.Quantile(0.5)
	}
	p.warning = doubt(slices.Concat(durations...))
	return p, nil
}

// withoutMark leaves out the mark that some programs write before UTF-8.
func withoutMark(r io.Reader) io.Reader {
	b := bufio.NewReader(r)
	if mark, _ := b.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = b.Discard(3) // it is there
	}
	return b
}

// job reads a line.
func job(row []string, unit time.Duration) (profile string, seconds float64, err error) {
	if len(row) > 2 {
		return "", 0, fmt.Errorf("%d fields: want a duration, or a profile and a duration", len(row))
	}
	field := strings.TrimSpace(row[len(row)-1])
	if len(row) == 2 {
		profile = strings.TrimSpace(row[0])
	}
	if len(profile) > maxNameLen {
		return "", 0, fmt.Errorf("a profile of %d bytes: at most %d", len(profile), maxNameLen)
	}
	if seconds, err = strconv.ParseFloat(field, 64); err == nil {
		seconds *= unit.Seconds()
	} else if d, bad := time.ParseDuration(field); bad == nil {
		seconds = d.Seconds()
	} else {
		return "", 0, fmt.Errorf("%.40q is no duration: want seconds, or such as 1m30s", field)
	}
	switch {
	case math.IsNaN(seconds):
		return "", 0, fmt.Errorf("%s is no duration", field)
	case seconds <= 0:
		return "", 0, fmt.Errorf("%s is no duration: it must be more than zero; are start and end swapped?", field)
	case seconds > maxTakes:
		return "", 0, fmt.Errorf("%s is more than a week: are these milliseconds? Then say -unit ms", field)
	case seconds < 1e-3:
		return "", 0, fmt.Errorf("%s is less than a millisecond: is -unit right?", field)
	}
	return profile, seconds, nil
}

// title reports whether a first line that is no job has the titles of columns.
func title(row []string) bool {
	if len(row) > 2 {
		return false
	}
	s := strings.TrimSpace(row[len(row)-1])
	return s != "" && !strings.ContainsAny(s[:1], "+-.0123456789") && !strings.EqualFold(s, "nan") && !strings.EqualFold(s, "inf")
}

// doubt says what looks wrong with durations that can be right.
func doubt(seconds []float64) string {
	slices.Sort(seconds)
	middle := seconds[len(seconds)/2]
	whole := !slices.ContainsFunc(seconds, func(s float64) bool { return s != math.Trunc(s) })
	if whole && middle > 3600 {
		return fmt.Sprintf("half of these jobs take longer than %s: if the numbers are milliseconds, say -unit ms", sim.Seconds(middle))
	}
	if middle < 0.2 {
		return fmt.Sprintf("half of these jobs take less than %s: is -unit right?", sim.Seconds(middle))
	}
	return ""
}

// generated makes a population where there is no file: previews, standard jobs
// and long renders.
func generated(n int, seed uint64) population {
	set := sim.Mixed()
	return population{set: set, jobs: sim.OneByOne(set, n, sim.Random(seed))}
}
