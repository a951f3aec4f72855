package main

import (
	"os"
	"testing"
)

// The test is the service too, when the world starts it as such.
func TestMain(m *testing.M) {
	if os.Getenv(fileVar) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestAServiceThatIsKilledLosesNothingAndBuysNothingTwice(t *testing.T) {
	if err := world(t.Context()); err != nil {
		t.Fatal(err)
	}
}
