package jobpoll

// SubmissionMetrics are the numbers of the submissions of one route, or of all.
type SubmissionMetrics struct {
	// Sent grows with each call of Send.
	Sent uint64 `json:"sent"`
	// Taken grows with each submission that became a watched job, Found with those
	// of them whose id was not told by the answer to Send but by a look-up, a notice
	// or a person.
	Taken uint64 `json:"taken"`
	Found uint64 `json:"found"`
	// NotSent grows with each that surely was not sent, Refused with each that the
	// provider refused, Absent with each that was surely not there afterwards.
	NotSent uint64 `json:"not_sent"`
	Refused uint64 `json:"refused"`
	Absent  uint64 `json:"absent"`
	// Doubted grows with each whose answer was lost, Ambiguous with each that was
	// then looked for in vain, Resolved with each use of Poller.Resolve.
	Doubted   uint64 `json:"doubted"`
	Ambiguous uint64 `json:"ambiguous"`
	Resolved  uint64 `json:"resolved"`
	// Waiting is how many wait for the budget, Sending how many are under way, InDoubt
	// how many are being looked for. They return to zero by themselves, Open, which
	// is how many wait for Poller.Resolve, does not.
	Waiting int `json:"waiting"`
	Sending int `json:"sending"`
	InDoubt int `json:"in_doubt"`
	Open    int `json:"open"`
}

// submitLevels counts submissions by state.
type submitLevels [SubmissionTaken + 1]int

func (m *SubmissionMetrics) level(n submitLevels) {
	m.Waiting, m.Sending, m.InDoubt, m.Open = n[SubmissionWaiting], n[SubmissionSending], n[SubmissionInDoubt], n[SubmissionAmbiguous]
}

func (m *SubmissionMetrics) add(o SubmissionMetrics) {
	m.Sent += o.Sent
	m.Taken += o.Taken
	m.Found += o.Found
	m.NotSent += o.NotSent
	m.Refused += o.Refused
	m.Absent += o.Absent
	m.Doubted += o.Doubted
	m.Ambiguous += o.Ambiguous
	m.Resolved += o.Resolved
	m.Waiting += o.Waiting
	m.Sending += o.Sending
	m.InDoubt += o.InDoubt
	m.Open += o.Open
}

func (r *routeMeter) countSubmit(n *uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*n++
}

func (r *routeMeter) submitSent()     { r.countSubmit(&r.submits.Sent) }
func (r *routeMeter) submitDoubted()  { r.countSubmit(&r.submits.Doubted) }
func (r *routeMeter) submitResolved() { r.countSubmit(&r.submits.Resolved) }

func (r *routeMeter) submitTaken(via Via) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.submits.Taken++
	if via != ViaSubmit {
		r.submits.Found++
	}
}

// submissionStopped counts an end that OnStop is told.
func (r *routeMeter) submissionStopped(reason Reason) { r.countSubmit(&r.stops[reason]) }

// submitEnded counts the end of a submission that became no job.
func (r *routeMeter) submitEnded(m SubmitMeaning) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch m {
	case SubmitNotSent:
		r.submits.NotSent++
	case SubmitRefused:
		r.submits.Refused++
	case SubmitAbsent:
		r.submits.Absent++
	case SubmitAmbiguous:
		r.submits.Ambiguous++
	}
}
