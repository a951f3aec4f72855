package plan

import "math"

// Unit is the told time left, in seconds, for which the tables of estimates
// are made: their ages are parts of what was told, times Unit.
const Unit = 60.0

// Set is what is planned for one profile. It is immutable once handed out.
type Set struct {
	// Age is planned on the time since the job began, in seconds.
	Age *Table `json:"age"`
	// Running, if it has proved better, on the time since the job was seen to
	// start.
	Running *Table `json:"running,omitempty"`
	// Probe is an age shortly before almost all jobs end, where a look at a job in
	// some tells whether they have become faster: looks that find all jobs done
	// cannot. Zero: the looks of Age tell.
	Probe float64 `json:"probe,omitempty"`
	// Told is planned on the time since the provider told how much was left;
	// Moved on the time since progress moved.
	Told  Guess `json:"told,omitzero"`
	Moved Guess `json:"moved,omitzero"`
}

// Guess is what has become of one kind of estimate.
type Guess struct {
	// Errors is the schedule of actual over told time left. Nil: too few were
	// seen to tell.
	Errors *Table `json:"errors,omitempty"`
	// Worse: the learned durations have proved better, the estimate is to be
	// left alone.
	Worse bool `json:"worse,omitempty"`
}

// Look gives the delay from the estimate to the next look, and the gap planned
// after it. left is the told time left, above zero.
func (g *Guess) Look(left, price float64) (delay, gap float64) {
	scale := left / Unit
	// A look of a price in seconds is dearer the shorter what is told.
	delay, gap = g.Errors.Look(0, max(price, 1)*guessScale/scale)
	return delay * scale, gap * scale
}

// guessScale is by how much the cost that a table of estimates is made for is
// below that of its schedule, so that a time left of up to half an hour still has a
// price of 1 or more.
const guessScale = 32

// BuildGuess makes the table of an estimate; ages are in Units of what was told.
func BuildGuess(ages, alive []float32, cost float64) *Table {
	return Build(ages, alive, cost/guessScale, 0)
}

// Valid reports whether a Set that was read from outside can be used.
func (s *Set) Valid() bool {
	ok := func(t *Table) bool { return t == nil || t.Valid() }
	return s.Age != nil && s.Age.Valid() && s.Probe >= 0 && !math.IsInf(s.Probe, 1) && ok(s.Running) && ok(s.Told.Errors) && ok(s.Moved.Errors)
}
