#!/bin/sh
# Writes the locks: every package that is installed, with its exact version (constraints.txt) and the hashes of its files.
# A mirror is told by uv's and npm's own settings (UV_INDEX_URL, npm config); no lock names one.
set -eu
cd "$(dirname "$0")/.."
in=.lock.in
trap 'rm -f $in' EXIT

lock() {
	name=$1
	shift
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o "locked/$name.txt" "$@" \
		--no-emit-package wavesim-sdk --no-emit-package wavesim-kernels --no-emit-package wavesim-world \
		--no-emit-package wavesim-devices --no-emit-package wavesim-conformance --no-emit-package wavesim-server --no-emit-package wavesim-emulators \
		--no-emit-package wavesim-viz --no-emit-package wavesim-bridges --no-emit-package wavesim-studies
	echo "locked/$name.txt: $(grep -c == "locked/$name.txt") packages"
}

{
	echo "-e ./broker_sdk[cli,keys,local,log]"
	for project in kernels world devices conformance server emulators viz bridges studies; do echo "-e ./$project"; done
	grep '^setuptools==' constraints.txt # builds our own
} > $in
wheels="--only-binary :all:"
lock run $in -c constraints.txt $wheels
# what compiles the kernels, installed first: a part of the same lock
awk '/^[a-z]/ { on = $1 ~ /^(click|llvmlite|lxml|msgpack|numba|numpy|posix-ipc|pyyaml|setuptools)==/ } on' locked/run.txt > locked/kernels.txt
lock dev $in requirements-dev.txt -c constraints.txt $wheels
lock mutants $in requirements-mutants.txt -c constraints.txt $wheels
lock node requirements-node.txt $wheels
lock audit requirements-audit.txt $wheels
lock mhkit requirements-mhkit.txt $wheels
lock bellhop requirements-bellhop.txt $wheels
lock navigators requirements-navigators.txt $wheels
lock docs requirements-docs.txt $wheels
grep -h '^setuptools==' constraints.txt | cat requirements-oracles.txt - > $in
lock oracles $in --only-binary :all: --no-binary arlpy --no-emit-package arlpy # arlpy alone has no wheel
grep '^arlpy==' requirements-oracles.txt > $in
lock arlpy $in --no-deps

for folder in viz/web tests/judges; do # apart from node_modules: npm would lock only what this platform has installed of optional packages
	apart=$(mktemp -d)
	cp $folder/package.json $apart/
	[ ! -f $folder/.npmrc ] || cp $folder/.npmrc $apart/
	(cd $apart && npm install --package-lock-only --ignore-scripts --no-audit --no-fund --loglevel=error)
	mv $apart/package-lock.json $folder/
	rm -r $apart
	echo "$folder/package-lock.json"
done
