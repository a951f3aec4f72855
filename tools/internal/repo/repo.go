// Package repo finds the files of the repository for the checks beside it.
package repo

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// Module is the path of the root module.
const Module = "github.com/jobpoll/jobpoll"

// Root returns the directory of the root module.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), "module "+Module+"\n") {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatalf("no go.mod of %s above the working directory", Module)
		}
		dir = up
	}
}

// Files lists the files of the repository, those included that are new and not
// ignored, with slashes and relative to Root. The names of the patterns
// ("*.go") are those of path.Match on the base name; none means all.
func Files(t testing.TB, patterns ...string) []string {
	t.Helper()
	root := Root(t)
	var files []string
	for f := range strings.SplitSeq(Run(t, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		if f == "" || !matches(path.Base(f), patterns) {
			continue
		}
		if info, err := os.Stat(filepath.Join(root, f)); err != nil || !info.Mode().IsRegular() {
			continue // deleted, not yet committed
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		t.Fatalf("git lists no file like %q", patterns)
	}
	return files
}

func matches(name string, patterns []string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, name); ok && err == nil {
			return true
		}
	}
	return len(patterns) == 0
}

// Read returns a file of the repository.
func Read(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(Root(t), file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Modules lists the directories that have a go.mod; "." is the first.
func Modules(t testing.TB) []string {
	t.Helper()
	dirs := []string{"."}
	for _, f := range Files(t, "go.mod") {
		if d := path.Dir(f); d != "." {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

// Run runs a command and returns what it prints; it fails the test where the
// command does.
func Run(t testing.TB, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		var said []byte
		if e, ok := err.(*exec.ExitError); ok {
			said = e.Stderr
		}
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, said)
	}
	return string(out)
}

// Source is one parsed Go file.
type Source struct {
	Name string // as Files gives it
	Fset *token.FileSet
	*ast.File
}

// Dir is the directory of the file, "." for the root.
func (s Source) Dir() string { return path.Dir(s.Name) }

// Test reports whether it is a test file.
func (s Source) Test() bool { return strings.HasSuffix(s.Name, "_test.go") }

// At is the place of a node, for a message.
func (s Source) At(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.Name, s.Fset.Position(n.Pos()).Line)
}

// Sources parses all Go files of the repository.
func Sources(t testing.TB) []Source {
	t.Helper()
	root := Root(t)
	var all []Source
	for _, name := range Files(t, "*.go") {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Source{Name: name, Fset: fset, File: f})
	}
	return all
}
