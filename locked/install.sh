# Install the packages of a locked file; say how many, how much and how long.
#   sh locked/install.sh FILE ENVIRONMENT COMMAND...      (the command that installs into this environment)
file=$1 into=$2 begin=$(date +%s)
shift 2
count=$(grep -c '^[A-Za-z0-9].*==' "$file")
megabytes() { du -sm "$into" | cut -f1; }
before=$(megabytes)
# pip downloads into the temporary folder first: it is in the environment, so that downloads count too
export TMPDIR="$(cd "$into" && pwd)/.downloads"
mkdir -p "$TMPDIR"
# a negative difference means that an update replaced larger packages
sofar() { size=$(($(megabytes) - before)); [ $size -ge 0 ] || size=0; echo "$size MB, $(($(date +%s) - begin)) s"; }

echo "installing $count packages of $file into $into (once)"
(while sleep 15 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do echo "  still installing into $into: $(sofar)"; done) &
progress=$!
"$@"
code=$?
kill $progress
rm -rf "$TMPDIR"
[ $code -ne 0 ] || echo "installed $count packages of $file into $into: $(sofar)"
exit $code
