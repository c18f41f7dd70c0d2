#!/bin/sh
# Write the locks: every package that is installed, with its exact version and the hashes of its files. Versions change only
# where a requirement demands it; `sh locked/lock.sh --upgrade` takes the newest ones.
# A mirror is set in the settings of uv and npm (UV_INDEX_URL, npm config); no lock names one.
set -eu
cd "$(dirname "$0")/.."
parts=$(mktemp)
trap 'rm -f $parts' EXIT
printf -- '-e ./%s\n' */pyproject.toml | sed 's,/pyproject.toml,,; s,/wavesim$,&[channels\,extend\,plots\,scenes\,studies],' > "$parts"
own=$(sed -n 's/^name = "\(.*\)"/--no-emit-package \1/p' */pyproject.toml)
upgrade=${1:-}

lock() { # NAME OF THE LOCK, OPTIONS OF uv
	name=$1
	shift
	# shellcheck disable=SC2086
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --only-binary :all: \
		$own $upgrade -o "locked/$name.txt" "$@"
	echo "locked/$name.txt: $(grep -c == "locked/$name.txt") packages"
}

lock run "$parts" --group build
lock compiler --group compiler -c locked/run.txt
lock dev "$parts" --group build --group dev -c locked/run.txt
lock mutants "$parts" --group mutants -c locked/run.txt
for group in node wheels audit mhkit bellhop navigators trainers docs; do lock $group --group $group; done
lock oracles --group oracles --no-binary arlpy --no-emit-package arlpy
lock arlpy --group arlpy --no-deps --no-binary arlpy

for folder in viz/web tests/judges; do # apart from node_modules: npm would lock only what this platform has installed of optional packages
	apart=$(mktemp -d)
	cp $folder/package.json "$apart/"
	[ ! -f $folder/.npmrc ] || cp $folder/.npmrc "$apart/"
	(cd "$apart" && npm install --package-lock-only --ignore-scripts --no-audit --no-fund --loglevel=error)
	mv "$apart/package-lock.json" $folder/
	rm -r "$apart"
	echo "$folder/package-lock.json"
done
