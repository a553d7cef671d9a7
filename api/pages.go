package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// asset is one file of the pages, held in memory.
type asset struct {
	body []byte
	kind string
	etag string // of its content: a changed file has another
}

// loadAssets reads the pages once. They are embedded and small.
func loadAssets(files fs.FS) (map[string]asset, error) {
	assets := map[string]asset{}
	if files == nil {
		return assets, nil
	}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		assets["/"+name] = asset{body: body, kind: mime.TypeByExtension(path.Ext(name)), etag: `"` + hex.EncodeToString(sum[:16]) + `"`}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the pages: %w", err)
	}
	return assets, nil
}

// orPage serves a page where there is no route. A route that takes everything would
// also take what another method is answered with 405 for.
func (s *Server) orPage(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := next(c)
		if errors.Is(err, echo.ErrNotFound) {
			return s.page(c)
		}
		return err
	}
}

// page serves a file of the pages, and tells whoever asks for anything else that
// there is nothing. A browser may keep a file but asks each time whether it changed.
func (s *Server) page(c echo.Context) error {
	request := c.Request()
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		return echo.ErrNotFound
	}
	file, ok := s.asset(request.URL.Path)
	if !ok {
		return echo.ErrNotFound
	}
	h := c.Response().Header()
	h.Set(echo.HeaderCacheControl, "no-cache")
	h.Set("ETag", file.etag)
	if file.kind != "" {
		h.Set(echo.HeaderContentType, file.kind)
	}
	http.ServeContent(c.Response(), request, "", time.Time{}, bytes.NewReader(file.body))
	return nil
}

// asset finds a file by path; / is index.html and /x also x.html.
func (s *Server) asset(urlPath string) (asset, bool) {
	name := path.Clean("/" + urlPath)
	if name == "/" {
		name = "/index.html"
	}
	file, ok := s.assets[name]
	if !ok && !strings.Contains(path.Base(name), ".") {
		file, ok = s.assets[name+".html"]
	}
	return file, ok
}
