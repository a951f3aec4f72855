package jobpoll_test

import (
	"encoding/json"
	"fmt"

	"github.com/jobpoll/jobpoll"
)

// The keys of a map can be written by encoding/json, and read again.
func ExampleParseKey() {
	key := jobpoll.Key{Route: "google/veo", ID: "models/veo-3/operations/o-1"}
	b, err := json.Marshal(map[jobpoll.Key]string{key: "order-4711"})
	fmt.Println(string(b), err)
	same, err := jobpoll.ParseKey("google%2Fveo/models/veo-3/operations/o-1")
	fmt.Println(same == key, err)
	// Output:
	// {"google%2Fveo/models/veo-3/operations/o-1":"order-4711"} <nil>
	// true <nil>
}
