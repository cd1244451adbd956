#!/usr/bin/env bash
# Builds the site of each tag into build/site/TAG, and writes build/site/versions.json, which the theme's version switcher reads.
# The site of the checkout is in build/site already. SITE_ADDRESS is the address of the published site.
set -euo pipefail
cd "$(dirname "$0")/../.."

versions="{\"name\": \"main\", \"version\": \"main\", \"url\": \"$SITE_ADDRESS/\"}"
for tag in $(git tag --list 'v*' --sort=-v:refname); do
  checkout="$(mktemp -d)"
  git archive "$tag" | tar -x -C "$checkout"
  SITE_VERSION="$tag" make -C "$checkout" site PYTHON=python
  mv "$checkout/build/site" "build/site/$tag"
  versions+=", {\"name\": \"$tag\", \"version\": \"$tag\", \"url\": \"$SITE_ADDRESS/$tag/\"}"
done
echo "[$versions]" > build/site/versions.json
