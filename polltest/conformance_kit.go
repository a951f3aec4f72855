package polltest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// check is one thing that is tried, on a stage of its own.
type check struct {
	name     string
	why, see string
	// needs are the answers that the adapter must read rightly for the check to
	// tell anything; where one of them is a fault already, it is not made.
	needs needs
	// lacks says what the Adapter does not have for it; nil, or empty: nothing.
	lacks func(a *Adapter) string
	run   func(s *stage)
}

// needs is a set of answers.
type needs uint8

const (
	needPending needs = 1 << iota
	needSucceeded
	needFailed
	needAll = needPending | needSucceeded | needFailed
)

var needNames = map[string]needs{"pending": needPending, "succeeded": needSucceeded, "failed": needFailed}

// allChecks are the checks in the order in which they are made: those that
// others need come first, and what all others add to comes last.
func allChecks() []check {
	return slices.Concat(stateChecks, detailChecks, wordChecks, statusChecks, hintChecks, bodyChecks, requestChecks, trustChecks, loadChecks, abilityChecks, secretChecks)
}

// kit is one run of TestChecker.
type kit struct {
	Adapter
	patience time.Duration

	faults  Findings
	misread needs // answers that are not read rightly
	sent    bool  // the credential was seen in a request
	leaks   []leak
	hangs   int  // calls that did not return when their context ended
	stuck   bool // one of them never did

	noAdapter bool // New gave none
}

// mostHangs is how many calls may hang before the kit gives up: each costs
// seconds.
const mostHangs = 1

// leak is a place where the credential appeared.
type leak struct{ check, where string }

func (k *kit) run() error {
	for _, c := range allChecks() {
		if why := k.cannotMake(c); why != "" {
			k.Logf("polltest: %s: not tried, after a fault that is told: %s", c.name, why)
			continue
		}
		if why := k.notMade(c); why != "" {
			k.untried(c, why)
			continue
		}
		before := len(k.faults)
		s, err := k.open(c)
		if err != nil {
			return err
		}
		if !k.noAdapter {
			c.run(s)
		}
		s.close()
		if len(k.faults) > before {
			k.misread |= needNames[c.name]
			k.stuck = k.stuck || k.misread != 0 && k.hangs > 0 // one that hangs over good answers hangs over all
		}
		k.sent = k.sent || s.sent()
	}
	return nil
}

// untried tells of a check that has nothing to try.
func (k *kit) untried(c check, why string) {
	k.Logf("polltest: %s: not tried (no fault): %s", c.name, why)
}

func (s *stage) untried(why string) { s.kit.untried(s.check, why) }

// cannotMake says which fault keeps a check from being made; empty if none does.
func (k *kit) cannotMake(c check) string {
	if slices.Contains(k.Skip, c.name) {
		return ""
	}
	switch {
	case k.noAdapter:
		return "Adapter.New gave no adapter"
	case k.misread == needAll:
		return "the adapter reads none of the answers Pending, Succeeded and Failed"
	case k.stuck, k.hangs > mostHangs:
		return "calls before it did not return"
	}
	for name, n := range needNames {
		if c.needs&n != 0 && k.misread&n != 0 {
			return fmt.Sprintf("the check %q failed", name)
		}
	}
	return ""
}

// notMade says what a check lacks to be made; empty if nothing.
func (k *kit) notMade(c check) string {
	if slices.Contains(k.Skip, c.name) {
		return "it is in Adapter.Skip"
	}
	if c.lacks != nil {
		return c.lacks(&k.Adapter)
	}
	return ""
}

// fault adds a finding of the check.
func (s *stage) fault(tried, did, want string) {
	s.kit.faults = append(s.kit.faults, &Finding{
		Check: s.check.name,
		Tried: s.masked(tried),
		Did:   s.masked(did),
		Want:  want,
		Why:   s.check.why,
		See:   s.check.see,
	})
}

// masked is a text without the credential, which a report of a leak must not
// spread.
func (s *stage) masked(text string) string {
	return strings.ReplaceAll(text, s.target.Credential, "<the credential>")
}

// job gives the n-th job.
func (k *kit) job(base string, n int) jobpoll.Job {
	if k.Job != nil {
		return k.Job(base, n)
	}
	return jobpoll.Job{Route: "conformance", ID: fmt.Sprintf("job-%04d", n)}
}

// clip bounds a text for people.
func clip(s string) string {
	const most = 300
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
