//go:build !race

package jobpoll_test

// raceEnabled tells that the race detector is on.
const raceEnabled = false
