package loopback

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// usual is the status and the text of a request that is not granted, at providers
// that have nothing of their own to say of it.
func usual(p Problem) (status int, message string) {
	status, message = p.Status, p.Message
	switch p.Kind {
	case ProblemNoPath:
		status = http.StatusNotFound
		if p.Call.Misplaced {
			status = http.StatusMethodNotAllowed
		}
	case ProblemBadRequest:
		status = http.StatusBadRequest
	case ProblemUnauthorized:
		status = http.StatusUnauthorized
	case ProblemNoJob, ProblemNotVisible:
		status = http.StatusNotFound
	case ProblemNotReady:
		status = http.StatusBadRequest
	case ProblemRateLimited, ProblemTooManyJobs:
		status = http.StatusTooManyRequests
	}
	return status, cmp.Or(message, strings.ToLower(http.StatusText(status)))
}

// oneBelow is the rest of a path below a folder, if it is one segment.
func oneBelow(path, folder string) (string, bool) {
	id, ok := strings.CutPrefix(path, folder)
	return id, ok && id != "" && !strings.Contains(id, "/")
}

// file is the URL of the output of a job, where its script tells none.
func file(id string) string { return "https://files.example.test/" + id + ".mp4" }

// filtered reports whether a filter failed the job.
func (v View) filtered() bool {
	return v.Entry.Failure != nil && v.Entry.Failure.Kind == jobpoll.FailureFiltered
}
