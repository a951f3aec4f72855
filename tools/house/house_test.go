// Package house checks the rules that the whole repository keeps. Each test is
// one rule; CONTRIBUTING.md has the reasons.
package house

import (
	"cmp"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jobpoll/jobpoll/tools/internal/repo"
)

// The words that are looked for are put together, so that this file does not
// hold them.
var strayWords = []struct {
	what string
	re   *regexp.Regexp
}{
	{"a directory of one machine", regexp.MustCompile(`(^|[\s"'` + "`" + `=:(,])/(` + `ro` + `ot|` + `ho` + `me|` + `tm` + `p|` + `Us` + `ers)(/|\b)`)},
	{"a package registry", regexp.MustCompile(`(?i)(pro` + `xy\.golang\.|su` + `m\.golang\.|go` + `proxy|registry\.np` + `mjs|py` + `pi\.org|crates\.` + `io)`)},
	{"an unfinished place", regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)},
}

func TestNoFileNamesAMachineARegistryOrUnfinishedWork(t *testing.T) {
	for _, f := range repo.Files(t) {
		text := repo.Read(t, f)
		if strings.Contains(text, "\x00") {
			continue // no text
		}
		for n, line := range strings.Split(text, "\n") {
			for _, w := range strayWords {
				if m := w.re.FindString(line); m != "" {
					t.Errorf("%s:%d: %s: %q", f, n+1, w.what, strings.TrimSpace(m))
				}
			}
		}
	}
}

// imported lists the import paths of a file.
func imported(s repo.Source) []string {
	var all []string
	for _, i := range s.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		all = append(all, p)
	}
	return all
}

// What is linked into a program that imports the library.
func TestTheLibraryDependsOnLittle(t *testing.T) {
	allowed := []string{"github.com/cenkalti/backoff/v4", "golang.org/x/time/rate"}
	deps := strings.Fields(repo.Run(t, repo.Root(t), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "."))
	if !slices.Contains(deps, repo.Module) {
		t.Fatalf("go list does not name the library itself: %q", deps)
	}
	for _, d := range deps {
		if d != repo.Module && !strings.HasPrefix(d, repo.Module+"/internal/") && !slices.Contains(allowed, d) {
			t.Errorf("the library depends on %s", d)
		}
	}
	for _, d := range strings.Fields(repo.Run(t, repo.Root(t), "go", "list", "-deps", ".")) {
		if d == "testing" || strings.HasPrefix(d, "testing/") || d == "flag" {
			t.Errorf("the library links %s into every program", d)
		}
	}
}

// Only who takes webhooks links what verifies tokens.
func TestOnlyPackageWebhookLinksTheLibraryForTokens(t *testing.T) {
	const jwt = "github.com/golang-jwt/jwt/v5"
	if deps := repo.Run(t, repo.Root(t), "go", "list", "-deps", "./webhook"); !strings.Contains(deps, jwt) {
		t.Error("package webhook does without it: take it off go.mod")
	}
	if deps := repo.Run(t, repo.Root(t), "go", "list", "-deps", ".", "./provider", "./polltest/..."); strings.Contains(deps, jwt) {
		t.Error("a package links it that verifies no tokens")
	}
}

func TestTheRootModuleRequiresLittle(t *testing.T) {
	allowed := []string{
		"github.com/cenkalti/backoff/v4", "golang.org/x/time", "github.com/stretchr/testify",
		"go.yaml.in/yaml/v3", // testify's
		"github.com/golang-jwt/jwt/v5",
	}
	mod := repo.Read(t, "go.mod")
	for _, m := range regexp.MustCompile(`(?m)^(?:require )?\s*(\S+\.\S+/\S+) v\S+`).FindAllStringSubmatch(mod, -1) {
		if !slices.Contains(allowed, m[1]) {
			t.Errorf("go.mod requires %s", m[1])
		}
	}
	if strings.Contains(mod, "replace ") {
		t.Error("go.mod of the library has a replace, which its users do not get")
	}
}

// layer is how far down a package stands: it imports only what is below it.
func layer(dir string) int {
	first, rest, _ := strings.Cut(dir, "/")
	switch {
	case dir == "internal/sdkcheck", dir == "internal/azurecheck", dir == "internal/sqltest", strings.HasPrefix(dir, "internal/webhookcheck"):
		return 4
	case dir == "internal/plan":
		return -1 // what durations plans with
	case strings.HasPrefix(dir, "internal/sim/"):
		return 5 // a program on the simulator
	case dir == "internal/sqltest/crash":
		return 5
	case first == "internal" && (rest == "sim" || rest == "bench" || strings.HasPrefix(rest, "sim/") || strings.HasPrefix(rest, "bench/")):
		return 4
	case dir == "internal/records": // plain memory, which other internals are made of
		return -1
	case first == "internal":
		return 0
	case dir == ".":
		return 1
	case dir == "polltest", dir == "polltest/sign", first == "sqlstore", first == "webhook":
		return 2
	case dir == "polltest/loopback", first == "provider":
		return 3
	case first == "examples":
		return 5
	}
	return 6
}

func TestArrowsPointDown(t *testing.T) {
	for _, s := range repo.Sources(t) {
		if s.Test() || strings.HasPrefix(s.Name, "tools/") {
			continue // tests may use polltest
		}
		from := layer(s.Dir())
		for _, p := range imported(s) {
			to, ok := strings.CutPrefix(p, repo.Module)
			if !ok {
				continue
			}
			to = cmp.Or(strings.TrimPrefix(to, "/"), ".")
			if s.Dir() == to || strings.HasPrefix(to, s.Dir()+"/") && s.Dir() != "." || layer(to) < from {
				continue
			}
			t.Errorf("%s imports %s, which does not stand below it", s.Name, p)
		}
	}
}

// askTime are the calls that ask package time for the time. All else takes it
// from the injected clock, or as an argument.
var askTime = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

// mayAskTime are the files that may, each with its reason.
var mayAskTime = map[string]string{
	"clock.go":          "it is package time as a Clock",
	"polltest/idle.go":  "the watchdog over work that neither ends nor waits is on real time",
	"polltest/start.go": "so is the one over a Run that does not begin or end",
}

func TestOnlyTheClockAsksPackageTime(t *testing.T) {
	asked := map[string]bool{}
	for _, s := range repo.Sources(t) {
		if s.Test() || layer(s.Dir()) >= 4 {
			continue
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(askTime, sel.Sel.Name) {
				asked[s.Name] = true
				if mayAskTime[s.Name] == "" {
					t.Errorf("%s: time.%s: use the injected clock, or take the instant as an argument", s.At(n), sel.Sel.Name)
				}
			}
			return true
		})
	}
	for f, why := range mayAskTime {
		if !asked[f] {
			t.Errorf("%s no longer asks package time (%s): take it off the list", f, why)
		}
	}
}

// Random numbers come from Config.Rand, or as an argument.
func TestOnlyTheEngineHasARandomSource(t *testing.T) {
	for _, s := range repo.Sources(t) {
		if s.Test() || layer(s.Dir()) >= 2 || s.Name == "poller.go" {
			continue
		}
		for _, p := range imported(s) {
			if p == "math/rand" || p == "math/rand/v2" || p == "crypto/rand" {
				t.Errorf("%s imports %s: use Config.Rand, or take the number as an argument", s.Name, p)
			}
		}
	}
}

// The core decides without I/O, locks or goroutines.
func TestTheCoreIsPure(t *testing.T) {
	pure := []string{"schedule.go", "track.go", "stamp.go", "decision.go", "signals.go", "stop.go", "limits.go", "ladder.go", "cooldown.go"}
	forbidden := []string{"context", "io", "log/slog", "net", "net/http", "os", "sync", "sync/atomic", "runtime"}
	found := 0
	for _, s := range repo.Sources(t) {
		if !slices.Contains(pure, s.Name) {
			continue
		}
		found++
		for _, p := range imported(s) {
			if slices.Contains(forbidden, p) {
				t.Errorf("%s imports %s, but it is part of the pure core", s.Name, p)
			}
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
				t.Errorf("%s: concurrency in the pure core", s.At(n))
			}
			return true
		})
	}
	if found != len(pure) {
		t.Errorf("%d of the %d files of the core are there: name the new ones here", found, len(pure))
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	has := map[string]bool{}
	for _, s := range repo.Sources(t) {
		if s.Test() && !strings.HasPrefix(s.Dir(), "tools/") {
			continue
		}
		has[s.Dir()] = has[s.Dir()] || s.Doc != nil
	}
	for dir, ok := range has {
		if !ok {
			t.Errorf("%s: no package comment", dir)
		}
	}
}

func TestEveryExportedNameHasADocComment(t *testing.T) {
	for _, s := range repo.Sources(t) {
		if s.Test() || s.File.Name.Name == "main" {
			continue
		}
		for _, d := range s.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || exportedReceiver(d)) && !wellKnown(d) {
					t.Errorf("%s: %s has no doc comment", s.At(d), d.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					undocumented(t, s, d, spec)
				}
			}
		}
	}
}

func undocumented(t *testing.T, s repo.Source, d *ast.GenDecl, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() && d.Doc == nil && spec.Doc == nil {
			t.Errorf("%s: %s has no doc comment", s.At(spec), spec.Name)
		}
	case *ast.ValueSpec:
		for _, n := range spec.Names {
			if n.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
				t.Errorf("%s: %s has no doc comment", s.At(spec), n)
			}
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	x := d.Recv.List[0].Type
	for {
		switch v := x.(type) {
		case *ast.StarExpr:
			x = v.X
		case *ast.IndexExpr:
			x = v.X
		case *ast.Ident:
			return v.IsExported()
		default:
			return false
		}
	}
}

// wellKnown are one-line methods of interfaces that every reader knows.
func wellKnown(d *ast.FuncDecl) bool {
	return d.Recv != nil && slices.Contains([]string{"Len", "Less", "Swap"}, d.Name.Name)
}

// An enum whose values are told to people and stored has a row for each value
// in the package's doc.
func TestThePackageDocHasEveryValueOfTheVocabularies(t *testing.T) {
	var doc string
	values := map[string][]string{"State": nil, "FailureKind": nil, "ErrorKind": nil, "Reason": nil}
	for _, s := range repo.Sources(t) {
		if s.Dir() != "." || s.Test() {
			continue
		}
		if s.Name == "doc.go" {
			doc = s.Doc.Text()
		}
		for _, d := range s.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			typ := ""
			for _, spec := range g.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				if id, ok := v.Type.(*ast.Ident); ok {
					typ = id.Name
				} else if len(v.Values) > 0 {
					typ = ""
				}
				if _, ok := values[typ]; ok {
					values[typ] = append(values[typ], v.Names[0].Name)
				}
			}
		}
	}
	for typ, names := range values {
		if len(names) < 7 {
			t.Errorf("only %d values of %s were found", len(names), typ)
		}
		for _, n := range names {
			if !regexp.MustCompile(`(?m)^\s+` + n + `\b\s+\S`).MatchString(doc) {
				t.Errorf("doc.go has no row for %s", n)
			}
		}
	}
}

// A target that is not compiled, or an example without an output, is never run
// and rots.
func TestEveryFuzzTargetAndExampleIsRun(t *testing.T) {
	want := map[string][]string{} // by module
	dirs := repo.Modules(t)
	module := func(dir string) string {
		best := "."
		for _, m := range dirs {
			if (dir == m || strings.HasPrefix(dir, m+"/")) && len(m) > len(best) {
				best = m
			}
		}
		return best
	}
	for _, s := range repo.Sources(t) {
		if !s.Test() {
			continue
		}
		for _, d := range s.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Fuzz") || strings.HasPrefix(f.Name.Name, "Example")) {
				m := module(s.Dir())
				want[m] = append(want[m], f.Name.Name)
			}
		}
	}
	root := repo.Root(t)
	for m, names := range want {
		listed := strings.Fields(repo.Run(t, path.Join(root, m), "go", "test", "-list", "^(Fuzz|Example)", "./..."))
		for _, n := range names {
			if !slices.Contains(listed, n) {
				t.Errorf("%s in module %s is not run: it is not compiled, or an example without // Output:", n, m)
			}
		}
	}
}

func TestEveryExampleProgramHasATest(t *testing.T) {
	mains, tests := map[string]bool{}, map[string]bool{}
	for _, s := range repo.Sources(t) {
		if !strings.HasPrefix(s.Dir(), "examples/") {
			continue
		}
		if s.Test() {
			tests[s.Dir()] = true
		} else if s.File.Name.Name == "main" {
			mains[s.Dir()] = true
		}
	}
	for dir := range mains {
		if !tests[dir] {
			t.Errorf("%s has no test", dir)
		}
	}
	if len(mains) == 0 {
		t.Error("there is no example program")
	}
}

func TestFilesEndWithOneNewlineAndHaveNoTrailingSpace(t *testing.T) {
	for _, f := range repo.Files(t, "*.go", "*.md", "*.mod", "*.conf", "run", "long") {
		text := repo.Read(t, f)
		if !strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\n") {
			t.Errorf("%s: does not end with one newline", f)
		}
		for n, line := range strings.Split(text, "\n") {
			if strings.TrimRight(line, " \t\r") != line {
				t.Errorf("%s:%d: space at the end of the line", f, n+1)
			}
		}
	}
}
