package jobpoll

import "strings"

// Words maps a provider's status words to states, for adapters.
type Words map[string]State

// State gives the state of a word, whatever its case and the white space
// around it: gateways pass words on in forms of their own. A word that is not
// there, and the empty one, is StateUnknown: the job is watched on, and the
// word counted if the Report carries it as RawStatus. Words that differ by
// case alone must mean the same. What an adapter decides by the word besides (a
// kind of failure, say) should not depend on its case either: strings.EqualFold.
func (w Words) State(word string) State {
	if s, ok := w[word]; ok {
		return s
	}
	word = strings.TrimSpace(word)
	for k, s := range w {
		if strings.EqualFold(strings.TrimSpace(k), word) {
			return s
		}
	}
	return StateUnknown
}
