package jobpoll

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"unicode/utf8"
)

// eventID stands for the event of a notice: a digest, so that ids of any
// length take the same room. The zero eventID is no event.
type eventID [16]byte

func (n *Notice) event() eventID {
	if n.EventID == "" {
		return eventID{}
	}
	h := sha256.New()
	_, _ = h.Write([]byte(n.Key.Route)) // never fails
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(n.EventID))
	return eventID(h.Sum(nil)[:len(eventID{})])
}

// longestEvent is the longest id of an event, in bytes, that is kept as it is.
const longestEvent = 1 << 10

// eventName is an event's id, or a digest of one that is long or no text: a header
// may have some KiB of anything, and must be known again all the same.
func eventName(id string) string {
	if len(id) <= longestEvent && utf8.ValidString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// MarshalText writes the digest in hexadecimal.
func (e eventID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, e[:]), nil }

// UnmarshalText reads it; what is none reads as no event.
func (e *eventID) UnmarshalText(b []byte) error {
	*e = eventID{}
	if len(b) == hex.EncodedLen(len(e)) {
		if d, err := hex.DecodeString(string(b)); err == nil {
			*e = eventID(d)
		}
	}
	return nil
}

// maxEvents bounds the events that are remembered, per generation of two.
const maxEvents = 32_768

// eventIDs remembers the events that were taken over: two generations, of
// which the older goes when the newer is full. A notice that only waits for its
// job is not among them, so that it may come again once it was dropped.
type eventIDs struct{ young, old map[eventID]struct{} }

func (e *eventIDs) seen(id eventID) bool {
	_, young := e.young[id]
	_, old := e.old[id]
	return young || old
}

func (e *eventIDs) add(id eventID) {
	if id == (eventID{}) {
		return
	}
	if e.young == nil {
		e.young = map[eventID]struct{}{}
	}
	if len(e.young) >= maxEvents {
		e.old, e.young = e.young, map[eventID]struct{}{}
	}
	e.young[id] = struct{}{}
}

// maxHeard bounds the events that are stored with a job; of more, the latest.
const maxHeard = 4

// hear remembers an event that was taken over for a job, with a Store in the
// job's record: what the event did and that it came are stored together, or
// neither is. Called under the lock.
func (p *Poller) hear(r *record, n *Notice) {
	id := n.event()
	if id == (eventID{}) {
		return
	}
	p.events.add(id)
	if p.store == nil || r.gone {
		return
	}
	if p.heard == nil {
		p.heard = map[handle][]eventID{}
	}
	ids := append(p.heard[r.handle()], id)
	p.heard[r.handle()] = slices.Clone(ids[max(len(ids)-maxHeard, 0):])
	p.touch(r)
}

// hearAgain takes up the events that were stored with a job.
func (p *Poller) hearAgain(r *record, ids []eventID) {
	ids = ids[max(len(ids)-maxHeard, 0):]
	if len(ids) == 0 {
		return
	}
	for _, id := range ids {
		p.events.add(id)
	}
	if p.heard == nil {
		p.heard = map[handle][]eventID{}
	}
	p.heard[r.handle()] = ids
}
