package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// downloadPart is how many bytes of a file are in memory at once.
const downloadPart = 32 << 10

var errStalled = fmt.Errorf("jobpoll: nothing came for as long as Config.Timeout: %w", context.DeadlineExceeded)

// Download gets a file with the credentials, by a GET, and writes it to w as it comes;
// it returns how many bytes were written. It is for outputs that the provider gives
// to nobody else: those of OpenAI's shape, of Stability and of Gemini. A URL that is
// signed, as most providers' are, needs no credentials, and another host than BaseURL
// and Config.Hosts is refused, also by a redirect (ErrForeignHost): get such a file by
// a client of your own.
//
// The file may be of any length: Config.MaxBody does not bound it, and Config.Timeout
// neither but what nothing comes for, before the answer begins or within it; the time
// that w takes does not count. The whole is bounded by ctx, and by the Timeout of
// Config.HTTP where that has one. Redirects are followed on the same host.
//
// The error is that of Do where the answer is no success. A success that is no file (a
// 202 of a job that is not done yet, an HTML page) is a transient one, and so is a file
// that broke off, which tells after how many bytes; then, as with an error of w, which
// is matched by errors.Is, what was written is a part. Nothing is repeated. Of an answer
// without a length whose end is that of the connection the end cannot be told from a
// break. What is in the file is not looked at.
//
// A Request with a Body, or with another Method than GET, is refused, and so is a nil w.
func (c *Client) Download(ctx context.Context, r Request, w io.Writer) (int64, error) {
	if r.Body != nil || r.Method != "" && r.Method != http.MethodGet {
		return 0, invalid("Download makes a GET without a body")
	}
	if w == nil {
		return 0, invalid("Download has no writer")
	}
	r.accept = "*/*"
	ctx, cancel := limitConns(ctx)
	defer cancel(nil)
	stall := &stallTimer{}
	if c.cfg.Timeout >= 0 {
		stall.Timer = c.cfg.Clock.AfterFunc(c.patience(r.Hold), func() { cancel(errStalled) })
		stall.after = c.cfg.Timeout
	}
	defer stall.stop()
	resp, key, _, err := c.open(ctx, &r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if why := noFile(resp); why != "" {
		ans, err := c.receive(ctx, resp, key, nil)
		if err == nil {
			err = ans.Errorf(jobpoll.ErrorTransient, "no file: %s", why)
		}
		return 0, err
	}
	n, err := copyFile(w, resp.Body, stall)
	var broken *brokenOff
	switch {
	case err == nil:
		return n, nil
	case errors.As(err, &broken):
		err = fmt.Errorf("the file broke off after %d bytes: %w", n, hide("reading", because(ctx, broken.err), key))
		return n, &jobpoll.CheckError{Kind: jobpoll.ErrorTransient, Status: resp.StatusCode, Err: err}
	}
	return n, fmt.Errorf("jobpoll: the file could not be written after %d bytes: %w", n, err)
}

// noFile says why the body of an answer is not what was asked for; empty if it may be.
func noFile(resp *http.Response) string {
	if resp.StatusCode != http.StatusOK {
		return fmt.Sprintf("the status %d", resp.StatusCode)
	}
	if e := first(resp.Header["Content-Encoding"]); e != "" && !strings.EqualFold(e, "identity") {
		return "an encoding that was not asked for"
	}
	if _, err := jobpoll.FromResponse(resp, time.Time{}); err != nil { // which leaves the body to be read
		return "an HTML page"
	}
	return ""
}

// brokenOff is an error of reading.
type brokenOff struct{ err error }

func (b *brokenOff) Error() string { return b.err.Error() }

// copyFile is io.Copy that tells errors of reading from those of writing, and lets a
// timer run only while it reads.
func copyFile(w io.Writer, body io.Reader, stall *stallTimer) (written int64, err error) {
	part := make([]byte, downloadPart)
	for {
		stall.begin()
		n, readErr := body.Read(part)
		stall.stop()
		if n > 0 {
			m, err := w.Write(part[:n])
			written += int64(min(max(m, 0), n))
			switch {
			case err != nil:
				return written, err
			case m != n:
				return written, io.ErrShortWrite
			}
		}
		switch {
		case readErr == io.EOF:
			return written, nil
		case readErr != nil:
			return written, &brokenOff{readErr}
		}
	}
}

// stallTimer ends what takes too long; without a Timer it does nothing.
type stallTimer struct {
	jobpoll.Timer
	after time.Duration
}

func (s *stallTimer) begin() {
	if s.Timer != nil {
		s.Reset(s.after)
	}
}

func (s *stallTimer) stop() {
	if s.Timer != nil {
		s.Stop()
	}
}
