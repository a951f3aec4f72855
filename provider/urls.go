package provider

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// URLs gives the addresses of the files in an Output of an adapter of this package,
// whatever form that has: a text, a list of texts, or objects and lists of objects
// with a url, uri, video_url, gcsUri and the like. An address is a text that is an
// absolute URL of http, https or gs and nothing else. They come in the order of the
// Output, each once, but those beside the video (under a name with thumbnail, cover,
// poster, frame, preview, image, watermark, audio or progress in it) after all
// others: the first is that of the video, where there is one. What is repeated of the
// order (under a name with prompt, input, webhook or callback in it) is left out.
//
// Nil where there is none: for a pending or failed job, for a video that is in the
// Output itself (Vertex without a bucket), and for what is no JSON. What lies deeper
// than 16 objects and lists is not looked at. The addresses of OpenAI's shape,
// Stability and Gemini are given only to who has the key, see Client.Download; most
// others live for hours or days (Report.ResultExpiresAt).
//
// Not verified: what is beside the video at fal and Replicate, where each model has
// an output of its own.
func URLs(output json.RawMessage) []string {
	if !json.Valid(output) {
		return nil
	}
	var found addresses
	found.search(output, false, 0)
	var all []string
	seen := map[string]bool{}
	for _, address := range slices.Concat(found.main, found.beside) {
		if !seen[address] {
			seen[address] = true
			all = append(all, address)
		}
	}
	return all
}

// deepest bounds how many objects and lists are around an address.
const deepest = 16

// Parts of the names of what is beside a video, and of what is repeated of an order.
var (
	besideNames = []string{"thumb", "cover", "poster", "frame", "preview", "image", "watermark", "audio", "progress"}
	orderNames  = []string{"prompt", "input", "webhook", "callback"}
)

// addresses are the URLs that were found.
type addresses struct{ main, beside []string }

// search looks through valid JSON; beside tells that it is beside the video.
func (a *addresses) search(value []byte, beside bool, depth int) {
	value = trimmed(value)
	if len(value) == 0 || depth > deepest {
		return
	}
	switch value[0] {
	case '"':
		if !mayBeURL(value) {
			return
		}
		if text := unquoted(value); !isURL(text) {
			return
		} else if beside {
			a.beside = append(a.beside, text)
		} else {
			a.main = append(a.main, text)
		}
	case '{':
		for m := members(value); m.next(); {
			if name := strings.ToLower(string(m.name)); !hasAny(name, orderNames) {
				a.search(m.value, beside || hasAny(name, besideNames), depth+1)
			}
		}
	case '[':
		for m := items(value); m.next(); {
			a.search(m.value, beside, depth+1)
		}
	}
}

func hasAny(name string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(name, p) })
}

// mayBeURL keeps a video in base64 from being copied.
func mayBeURL(quoted []byte) bool {
	begin := bytes.ToLower(quoted[:min(len(quoted), len(`"http`))])
	return bytes.HasPrefix(begin, []byte(`"http`)) || bytes.HasPrefix(begin, []byte(`"gs:`))
}

// isURL reports whether a text is an address and nothing else.
func isURL(text string) bool {
	if strings.ContainsAny(text, " \t\r\n") {
		return false
	}
	u, err := url.Parse(text)
	return err == nil && slices.Contains([]string{"http", "https", "gs"}, u.Scheme) && u.Hostname() != ""
}
