package polltest

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// goroutineID returns the number that the runtime prints for this goroutine.
func goroutineID() uint64 {
	var buf [64]byte
	text := string(buf[:runtime.Stack(buf[:], false)])
	id, _, _ := parseHeader(text)
	return id
}

// goroutine is one goroutine of a dump.
type goroutine struct {
	id, parent uint64 // parent started it; 0: not known
	state      string // "running", "select", "chan receive", "IO wait", …
	frames     []string
	text       string
}

// allGoroutines returns all goroutines of the process by number.
func allGoroutines() map[uint64]goroutine {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			return parseDump(string(buf[:n]))
		}
		buf = make([]byte, 2*len(buf))
	}
}

// parseDump reads what runtime.Stack writes.
func parseDump(dump string) map[uint64]goroutine {
	all := make(map[uint64]goroutine)
	for block := range strings.SplitSeq(dump, "\n\n") {
		id, state, ok := parseHeader(block)
		if !ok {
			continue
		}
		g := goroutine{id: id, state: state, text: strings.TrimSpace(block)}
		_, body, _ := strings.Cut(block, "\n")
		for line := range strings.SplitSeq(body, "\n") {
			if strings.HasPrefix(line, "\t") || line == "" {
				continue // a file and line
			}
			if by, ok := strings.CutPrefix(line, "created by "); ok {
				if _, n, ok := strings.Cut(by, " in goroutine "); ok {
					g.parent, _ = strconv.ParseUint(n, 10, 64)
				}
				continue
			}
			if i := strings.LastIndexByte(line, '('); i > 0 {
				line = line[:i] // the arguments
			}
			g.frames = append(g.frames, line)
		}
		all[id] = g
	}
	return all
}

// parseHeader reads "goroutine 12 [select, 2 minutes]:". The state is bare:
// "select" also for "select (durable)".
func parseHeader(text string) (id uint64, state string, ok bool) {
	rest, ok := strings.CutPrefix(text, "goroutine ")
	if !ok {
		return 0, "", false
	}
	number, rest, _ := strings.Cut(rest, " ")
	id, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, "", false
	}
	_, rest, _ = strings.Cut(rest, "[")
	state, _, _ = strings.Cut(rest, "]")
	state, _, _ = strings.Cut(state, ",")
	for _, note := range []string{" (scan)", " (durable)", " (leaked)"} {
		state = strings.TrimSuffix(state, note)
	}
	return id, state, true
}

// parked reports whether the goroutine waits for another one.
func (g *goroutine) parked() bool {
	return g.waits() || g.state == "sync.WaitGroup.Wait"
}

// waits reports whether it can be waiting for a context.
func (g *goroutine) waits() bool {
	return g.state == "chan receive" || g.state == "select"
}

// Functions of these packages wait for the world outside of the process.
var outside = []string{"net.", "net/", "internal/poll.", "crypto/tls.", "syscall.", "os.", "os/exec.", "database/sql.",
	"golang.org/x/net/", "google.golang.org/grpc", "github.com/quic-go/"}

// network reports whether the goroutine waits for the world outside. An HTTP
// handler or a RoundTripper that somebody wrote and that net/http called does
// not, just because of that.
func (g *goroutine) network() bool {
	if g.state == "IO wait" {
		return true
	}
	for _, f := range g.frames {
		if strings.HasSuffix(f, ".ServeHTTP") {
			return false
		}
		for _, prefix := range outside {
			if strings.HasPrefix(f, prefix) {
				return true
			}
		}
		if strings.HasSuffix(f, ".RoundTrip") {
			return false
		}
	}
	return false
}

// handler reports whether the goroutine serves an HTTP request.
func (g *goroutine) handler() bool {
	serves, handles := false, false
	for _, f := range g.frames {
		serves = serves || f == "net/http.(*conn).serve" || strings.HasPrefix(f, "net/http.(*http2serverConn).runHandler")
		handles = handles || strings.HasSuffix(f, ".ServeHTTP")
	}
	return serves && handles
}

// allParked reports whether each of the items waits for its context: whether
// all goroutines that belong to them wait for each other or for a channel, and
// at least one of each item for a channel. network tells that some wait for
// the network, which counts as waiting where for each of them a handler of an
// HTTP server in this process waits, and none is at work.
func (c *Clock) allParked(items []look) (waiting, network bool) {
	all := allGoroutines()
	family := make(map[uint64]bool)
	for _, it := range items {
		for _, id := range it.goroutines {
			family[id] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for id, g := range all {
			if g.parent != 0 && family[g.parent] && !family[id] {
				family[id], grown = true, true
			}
		}
	}

	outside := 0 // goroutines that wait for the network
	for id := range family {
		g, alive := all[id]
		switch {
		case !alive:
		case g.network():
			outside++
		case !g.parked():
			return false, false
		}
	}
	for _, it := range items {
		waits := false
		for _, id := range it.goroutines {
			g, alive := all[id]
			waits = waits || alive && (g.waits() || g.network())
		}
		if !waits {
			return false, false
		}
	}
	if outside == 0 {
		return true, false
	}

	handlers := 0
	for _, g := range all {
		if !g.handler() {
			continue
		}
		if !g.parked() || g.network() {
			return false, true
		}
		handlers++
	}
	return handlers >= outside, true
}

// sortedGoroutines is allGoroutines by number.
func sortedGoroutines() []goroutine {
	return slices.SortedFunc(maps.Values(allGoroutines()), func(a, b goroutine) int { return cmp.Compare(a.id, b.id) })
}
