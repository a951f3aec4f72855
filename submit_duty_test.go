package jobpoll

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

type findsNothing struct{}

func (findsNothing) Lookup(context.Context, Lost) (Finding, error) { return Finding{}, nil }

func TestWhatThereIsToDoForASubmission(t *testing.T) {
	const now, later = Stamp(1000), Stamp(1001)
	searched, unsearched := &route{reconciler: findsNothing{}}, &route{}
	named, namedLater := &sighting{id: "x", notBefore: now}, &sighting{id: "x", notBefore: later}
	told := &Outcome{Reason: ReasonAmbiguous}
	nothing := &SubmitError{Meaning: SubmitAbsent}
	run := surroundings{listed: true, now: now}
	known := surroundings{listed: true, known: true, now: now}
	seen := map[duty]bool{}
	for name, c := range map[string]struct {
		s    submission
		by   surroundings
		want duty
		at   Stamp
	}{
		"waits for its turn":                     {submission{route: searched, state: SubmissionWaiting}, run, dutyNone, 0},
		"is being sent":                          {submission{route: searched, state: SubmissionSending}, run, dutyNone, 0},
		"is being sent, and its job is known":    {submission{route: searched, state: SubmissionSending}, known, dutyNone, 0},
		"has no route yet":                       {submission{state: SubmissionInDoubt, behind: true}, known, dutyNone, 0},
		"another has its place":                  {submission{route: searched, state: SubmissionTaken, behind: true}, surroundings{now: now}, dutyNone, 0},
		"Run ends":                               {submission{route: searched, state: SubmissionTaken}, surroundings{listed: true, closed: true, now: now}, dutyPause, now},
		"in doubt, and its job is known":         {submission{route: searched, state: SubmissionInDoubt, lookAt: later}, known, dutySettle, 0},
		"ambiguous, and its job is known":        {submission{route: unsearched, state: SubmissionAmbiguous}, known, dutySettle, 0},
		"in doubt, and an id was named":          {submission{route: searched, state: SubmissionInDoubt, lookAt: later, found: named}, run, dutyFollowUp, 0},
		"ambiguous, and an id was named":         {submission{route: unsearched, state: SubmissionAmbiguous, found: named}, run, dutyFollowUp, 0},
		"taken, and an id was named":             {submission{route: searched, state: SubmissionTaken, found: named}, run, dutyForget, 0},
		"not stored as it is":                    {submission{route: searched, state: SubmissionSending, behind: true}, run, dutyWrite, 0},
		"came to nothing, callers wait":          {submission{route: searched, state: SubmissionNotSent, result: nothing, callers: 1}, run, dutyReply, 0},
		"came to nothing, nobody waits":          {submission{route: searched, state: SubmissionNotSent, result: nothing}, run, dutyForget, 0},
		"has an end to tell":                     {submission{route: searched, state: SubmissionNotSent, outcome: told, tellAt: now}, run, dutyTell, 0},
		"has an end to tell again, later":        {submission{route: searched, state: SubmissionNotSent, outcome: told, tellAt: later}, run, dutyPause, later},
		"has told its end":                       {submission{route: searched, state: SubmissionNotSent, outcome: told, delivered: true, tellAt: later}, run, dutyForget, 0},
		"in doubt":                               {submission{route: searched, state: SubmissionInDoubt, lookAt: now}, run, dutyLookUp, 0},
		"in doubt, looked for later":             {submission{route: searched, state: SubmissionInDoubt, lookAt: later}, run, dutyPause, later},
		"in doubt, an id is asked about later":   {submission{route: searched, state: SubmissionInDoubt, lookAt: now, found: namedLater}, run, dutyLookUp, 0},
		"in doubt, nothing can look for it":      {submission{route: unsearched, state: SubmissionInDoubt, lookAt: now}, run, dutyGiveUp, 0},
		"in doubt, only the id can be looked at": {submission{route: unsearched, state: SubmissionInDoubt, lookAt: now, found: namedLater}, run, dutyNone, 0},
		"taken":                                  {submission{route: searched, state: SubmissionTaken, slotHeld: true}, run, dutyForget, 0},
		"ambiguous and told":                     {submission{route: unsearched, state: SubmissionAmbiguous, outcome: told, delivered: true}, run, dutyNone, 0},
		"ambiguous, it holds a job slot":         {submission{route: unsearched, state: SubmissionAmbiguous, slotHeld: true, slotEnds: later}, run, dutyPause, later},
		"ambiguous, its job slot is over":        {submission{route: unsearched, state: SubmissionAmbiguous, slotHeld: true, slotEnds: now}, run, dutyFreeSlot, 0},
	} {
		d, at := c.s.nextDuty(c.by)
		assert.Equal(t, c.want, d, name)
		assert.Equal(t, c.at, at, name)
		seen[c.want] = true
	}
	for d := dutyNone; d <= dutyFreeSlot; d++ {
		assert.True(t, seen[d], "duty %d", d)
	}
}

// All of it is to be done; each thing leaves the next one once it no longer is.
func TestWhatIsToBeDoneForASubmissionHasItsOrder(t *testing.T) {
	const now, first, second, third = Stamp(1000), Stamp(1001), Stamp(1002), Stamp(1003)
	s := submission{
		route: &route{reconciler: findsNothing{}}, state: SubmissionInDoubt, found: &sighting{id: "x"}, behind: true,
		result: &SubmitError{}, callers: 1, outcome: &Outcome{}, tellAt: third, lookAt: second, slotHeld: true, slotEnds: first,
	}
	by := surroundings{closed: true, known: true, now: now}
	for i, c := range []struct {
		want duty
		at   Stamp
		over func()
	}{
		{dutyNone, 0, func() { by.listed = true }},
		{dutyPause, now, func() { by.closed = false }},
		{dutySettle, 0, func() { by.known = false }},
		{dutyFollowUp, 0, func() { s.found = nil }},
		{dutyWrite, 0, func() { s.behind = false }},
		{dutyReply, 0, func() { s.callers = 0 }},
		{dutyPause, third, func() { s.tellAt = now }},
		{dutyTell, 0, func() { s.delivered = true }},
		{dutyPause, second, func() { s.lookAt = now }},
		{dutyLookUp, 0, func() { s.route = &route{} }},
		{dutyGiveUp, 0, func() { s.state = SubmissionNotSent }},
		{dutyForget, 0, func() { s.state = SubmissionAmbiguous }},
		{dutyPause, first, func() { s.slotEnds = now }},
		{dutyFreeSlot, 0, func() { s.slotHeld = false }},
		{dutyNone, 0, func() {}},
	} {
		d, at := s.nextDuty(by)
		assert.Equal(t, c.want, d, "step %d", i)
		assert.Equal(t, c.at, at, "step %d", i)
		c.over()
	}
}
