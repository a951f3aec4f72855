package jobpoll

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxScrubbed bounds the bytes of what scrub returns.
	maxScrubbed = 500
	// maxScrubInput bounds what is looked at. Package regexp is linear, not fast.
	maxScrubInput = 8 << 10
	// maxCutToken bounds what is dropped of a word that maxScrubInput has cut
	// in two. Half a secret might not look like one any more.
	maxCutToken = 1 << 10
	// minToken is the least length of what can be a key of any kind; the
	// patterns below ask for as many bytes after their mark, or for more in all.
	minToken = 12
)

// What a secret looks like. Each pattern keeps its first group and puts an
// ellipsis for the rest. Matching too much costs a word of a message; matching
// too little costs an account.
var (
	// https://user:password@host; up to the last @ of the authority.
	secretUserinfo = regexp.MustCompile(`(://)[^/?#\s"<>]*@`)
	// ?key=value&key=value, and the same in a fragment.
	secretQuery = regexp.MustCompile(`([?&#][^=&#?\s"<>]*=)[^&#\s"<>]+`)
	// Authorization: Bearer value, also as it looks in JSON and in a printed
	// http.Header, with or without a scheme.
	secretAuthorization = regexp.MustCompile(`(?i)(authorization\\?["']?\s?[:=]\s?\\?["'\[]{0,2}(?:[a-z][a-z0-9-]*\s)?)[^\s"'<>,;\])}]+`)
	// Other words like it need the scheme: "authentication: failed" says no secret.
	secretScheme = regexp.MustCompile(`(?i)(auth[a-z_-]*\\?["']?\s?[:=]\s?\\?["'\[]{0,2}(?:bearer|basic|key|token)\s)[^\s"'<>,;\])}]+`)
	// Without the colon, and for a bare Bearer, only what is as long as a token.
	secretToken = regexp.MustCompile(`(?i)(\bbearer\s|\bauth[a-z_-]*\s(?:basic|key|token)\s)[a-z0-9_.~+/=:-]{12,}`)
	// api_key=value, "password":"value".
	secretNamed = regexp.MustCompile(`(?i)((?:api[_-]?key|access[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret|password)\\?["']?\s?[:=]\s?\\?["'\[]{0,2})[^\s"'<>,;&\])}]{8,}`)
	// Keys that begin with a mark of who issued them.
	secretKey = regexp.MustCompile(`(\b(?:[spr]k[-_]|r8_|key-|wh(?:sec|sk)_|xai-|AIza))[A-Za-z0-9_+/=-]{12,}`)
	// JSON Web Tokens.
	secretJWT = regexp.MustCompile(`(\beyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]+`)
)

// scrub makes text of others fit for an error, an outcome or a log: one line
// of at most 500 bytes, valid UTF-8 without control characters, and without
// what looks like a secret.
func scrub(s string) string { return cutBytes(redact(s), maxScrubbed) }

// scrubErr is scrub on the text of an error: empty for nil, and safe against
// an Error method that panics, such as that of a nil pointer.
func scrubErr(err error) (s string) {
	if err == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			s = "an error whose Error method panics"
		}
	}()
	return scrub(err.Error())
}

// redact is scrub without the bound of 500 bytes.
func redact(s string) string {
	s, cut := firstBytes(s, maxScrubInput)
	s = oneLine(s) // first, so that the patterns see what a reader would see
	if cut {
		s = dropLastWord(s, maxCutToken) + "…"
	}
	// The cheap tests keep the common text, which has no secret, cheap.
	if strings.Contains(s, "://") {
		s = secretUserinfo.ReplaceAllString(s, "${1}…@")
	}
	if strings.IndexByte(s, '=') >= 0 {
		s = secretQuery.ReplaceAllString(s, "${1}…")
	}
	lower := strings.ToLower(s)
	named := strings.ContainsAny(s, ":=")
	if named && strings.Contains(lower, "auth") {
		s = secretAuthorization.ReplaceAllString(s, "${1}…")
		s = secretScheme.ReplaceAllString(s, "${1}…")
	}
	if named && containsAny(lower, "key", "token", "secret", "password") {
		s = secretNamed.ReplaceAllString(s, "${1}…")
	}
	if hasRun(s, minToken) {
		if containsAny(lower, "auth", "bearer") {
			s = secretToken.ReplaceAllString(s, "${1}…")
		}
		s = secretKey.ReplaceAllString(s, "${1}…")
		s = secretJWT.ReplaceAllString(s, "${1}…")
	}
	return s
}

func containsAny(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// hasRun reports whether s has n bytes in a row that keys are made of.
func hasRun(s string, n int) bool {
	run := 0
	for i := range len(s) {
		if c := s[i]; !isASCIIDigit(c) && !isASCIILetter(c) && strings.IndexByte("_-.~+/=:", c) < 0 {
			run = 0
		} else if run++; run == n {
			return true
		}
	}
	return false
}

// oneLine gives valid UTF-8 with each run of white space made one space, and
// without leading and trailing space, control and format characters (among
// these the marks that turn the direction of writing).
func oneLine(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				continue // not UTF-8
			}
		}
		ascii := ' ' < r && r <= '~' // most text is
		switch {
		case !ascii && unicode.IsSpace(r):
			space = true
		case !ascii && unicode.In(r, unicode.Cc, unicode.Cf):
		default:
			if space && b.Len() > 0 {
				b.WriteByte(' ')
			}
			space = false
			b.WriteRune(r)
		}
	}
	return b.String()
}

// firstBytes gives at most n bytes of s, and whether that cut it. It may leave
// a part of a rune.
func firstBytes(s string, n int) (string, bool) {
	if len(s) <= n {
		return s, false
	}
	return s[:n], true
}

// dropLastWord drops what follows the last space, but at most n bytes.
func dropLastWord(s string, n int) string {
	at := strings.LastIndexByte(s, ' ') + 1
	return strings.ToValidUTF8(s[:max(at, len(s)-n, 0)], "")
}

// cutBytes bounds valid UTF-8 to n bytes, the ellipsis of a cut included.
func cutBytes(s string, n int) string {
	const more = "…"
	if len(s) <= n {
		return s
	}
	end := n - len(more)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + more
}

// cutRunes bounds valid UTF-8 to n runes and the ellipsis of a cut.
func cutRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

func isASCIIDigit(c byte) bool { return '0' <= c && c <= '9' }

func isASCIILetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
