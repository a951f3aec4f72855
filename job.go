package jobpoll

import "time"

// Key names one remote job: the route it is watched on and the id that the
// provider gave it.
type Key struct {
	Route string `json:"route"`
	ID    string `json:"id"`
}

// String returns "route/id". Where a route may hold a slash it does not tell keys
// apart; MarshalText does, which ParseKey reads.
func (k Key) String() string { return k.Route + "/" + k.ID }

// Job is a remote job to watch. It is plain data, comparable, and survives
// encoding/json. Route and ID are required; everything else is optional.
type Job struct {
	// Route is the name of the Route whose Checker knows this job.
	Route string `json:"route"`
	// ID is the provider's id of the job, never the caller's own.
	ID string `json:"id"`
	// ClientKey is the caller's own id. When set it is unique within a Poller,
	// is stored, and comes back in JobInfo, Update, Outcome and Notice.
	ClientKey string `json:"client_key,omitempty"`
	// Ref is the adapter's own reference (a status URL, an endpoint family, …).
	// It is opaque to the engine, stored, and replaced when a Report carries one.
	Ref string `json:"ref,omitempty"`
	// Profile names model and settings: jobs of one profile take alike long.
	Profile string `json:"profile,omitempty"`
	// Expected is the caller's estimate of the whole duration. Zero: what the
	// guidance of the profile says, else the row for unknown jobs. Negative
	// counts as zero. Once jobs of the Profile have ended, looks go by how long
	// those took. Until then they go by the whole Family of the route, if it has
	// seen 5 jobs end and Expected lies within twice what most of them took.
	Expected time.Duration `json:"expected,omitempty"`
	// SubmittedAt is when the provider accepted the job. Zero: the moment of
	// Watch. A time in the future counts as now: ages are never negative.
	SubmittedAt time.Time `json:"submitted_at,omitzero"`
	// NotBefore is the earliest instant of the first look. Zero: none.
	NotBefore time.Time `json:"not_before,omitzero"`
	// Deadline is the caller's own end of patience. Zero: only StopRules bind.
	Deadline time.Time `json:"deadline,omitzero"`
}

// Key returns the route and id of the job.
func (j Job) Key() Key { return Key{Route: j.Route, ID: j.ID} }
