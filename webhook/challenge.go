package webhook

import "encoding/json"

// maxChallenge bounds what is sent back, in bytes.
const maxChallenge = 1 << 10

// EchoChallenge answers a body {"challenge": …} with the same: what MiniMax
// wants within 3 s of the submission that names the URL, or it refuses the job.
// A text or a number of at most 1 KiB is sent back, and nothing else of the body.
func EchoChallenge(body []byte) (answer []byte, ok bool) {
	var v struct {
		Challenge json.RawMessage `json:"challenge"`
	}
	if json.Unmarshal(body, &v) != nil || len(v.Challenge) == 0 || len(v.Challenge) > maxChallenge {
		return nil, false
	}
	switch c := v.Challenge[0]; {
	case c == '"' && len(v.Challenge) > 2, c >= '0' && c <= '9':
	default:
		return nil, false
	}
	answer, err := json.Marshal(v)
	return answer, err == nil
}
