package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// screen shows a board while it changes: drawn again and again on a terminal,
// else as lines.
type screen struct {
	out   io.Writer
	live  bool
	color bool
	width func() int
}

const (
	redraw       = 100 * time.Millisecond
	usualColumns = 80
)

// newScreen looks at what out is. NO_COLOR switches colours off, TERM=dumb the
// drawing.
func newScreen(out io.Writer, getenv func(string) string) *screen {
	s := &screen{out: out, width: func() int { return usualColumns }}
	f, ok := out.(*os.File)
	if !ok || getenv("TERM") == "dumb" {
		return s
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return s
	}
	s.live, s.color = true, getenv("NO_COLOR") == ""
	s.width = func() int { return columns(f.Fd()) }
	return s
}

// show shows b until over is closed.
func (s *screen) show(b *board, over <-chan struct{}) {
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	if s.live {
		s.draw(b, tick.C, over)
		return
	}
	fmt.Fprintf(s.out, "%d jobs at %s, %d times as fast as real time\n", len(b.plan.orders), strings.Join(b.plan.providers, ", "), b.plan.speed)
	told := 0
	for more := true; more; {
		select {
		case <-tick.C:
		case <-over:
			more = false
		}
		for _, e := range b.eventsFrom(told) {
			fmt.Fprintln(s.out, e)
			told++
		}
	}
}

// What a terminal is told.
const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	eraseBelow = "\x1b[J"
)

func (s *screen) draw(b *board, tick <-chan time.Time, over <-chan struct{}) {
	fmt.Fprint(s.out, hideCursor)
	defer fmt.Fprint(s.out, showCursor)
	up := ""
	for more := true; more; {
		f := frame(b.view(), s.width(), s.color)
		fmt.Fprint(s.out, up+f)
		up = fmt.Sprintf("\x1b[%dA\r%s", strings.Count(f, "\n"), eraseBelow)
		select {
		case <-tick:
		case <-over:
			more = false
		}
	}
	fmt.Fprint(s.out, up+frame(b.view(), s.width(), s.color))
}

// frame is one picture of the board, no line as wide as width.
func frame(v view, width int, color bool) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(cut(fmt.Sprintf(format, args...), width-1) + "\n")
	}
	line("jobpoll: %d jobs at %s    %s, %d times real time", v.allJobs, v.providers, v.at, v.speed)
	line("")
	const beside = len("standard  [] 600/600  600 queued  600 running")
	for _, t := range v.classes {
		head := fmt.Sprintf("%-8s  ", t.name)
		tail := fmt.Sprintf(" %3d/%d  %d queued  %d running", t.succeeded+t.stopped, t.jobs, t.queued, t.running)
		room := min(max(width-1-beside, 0), 40)
		b.WriteString(cut(head, width-1) + bar(t, room, color) + cut(tail, max(width-1-len(head)-room-2, 0)) + "\n")
	}
	line("")
	line("%-8s  %d requests, %d rate limits", "jobpoll", v.requests, v.limited)
	line("%-8s  %d requests, %d rate limits, %d/%d ended", "5 s loop", v.loopAsks, v.loopLimited, v.loopEnds, v.allJobs)
	line("")
	for _, e := range v.events {
		line("%s", e)
	}
	for range latestEvents - len(v.events) {
		line("")
	}
	return b.String()
}

// bar shows a class in room columns: # succeeded, x stopped otherwise, > running.
func bar(t tally, room int, color bool) string {
	if room < 4 || t.jobs == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("[")
	upTo, drawn := 0, 0
	for _, part := range []struct {
		n    int
		mark string
		code int
	}{{t.succeeded, "#", 32}, {t.stopped, "x", 31}, {t.running, ">", 33}, {t.jobs - t.succeeded - t.stopped - t.running, ".", 2}} {
		upTo += part.n
		columns := upTo*room/t.jobs - drawn
		drawn += columns
		text := strings.Repeat(part.mark, columns)
		if color && columns > 0 {
			text = fmt.Sprintf("\x1b[%dm%s\x1b[0m", part.code, text)
		}
		b.WriteString(text)
	}
	return b.String() + "]"
}

// cut shortens a text to so many columns.
func cut(text string, columns int) string {
	runes := []rune(text)
	if len(runes) <= columns {
		return text
	}
	return string(runes[:max(columns, 0)])
}
