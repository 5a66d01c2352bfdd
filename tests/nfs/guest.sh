#!/bin/busybox sh
# The init of the guest: mounts the server of the host and does with it what people do. Says "ok NAME" or "FAILED NAME".
/bin/busybox mkdir -p /bin /proc /sys /mnt
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
for one in @MODULES@; do insmod /$one || echo "FAILED insmod $one"; done
ip link set lo up
ip link set eth0 up
ip addr add 10.0.2.15/24 dev eth0
OPTIONS="nolock,vers=3,proto=tcp,mountproto=tcp,port=@PORT@,mountport=@PORT@,addr=@HOST@,actimeo=1"

check() {  # NAME COMMAND...: does it in the mount
    name=$1; shift
    if (cd /mnt && eval "$@") >/tmp/said 2>&1; then echo "ok $name"; else echo "FAILED $name"; cat /tmp/said; fi
}
mkdir -p /tmp
mounted() { mount -i -t nfs -o "$OPTIONS" @HOST@:@EXPORT@ /mnt; }

if mounted; then echo "ok mount"; else echo "FAILED mount"; dmesg | tail -5; poweroff -f; fi
check there 'test "$(cat from-host)" = "written by the host"'
check write 'echo hello > a && test "$(cat a)" = hello && echo more >> a && test "$(wc -l < a)" = 2'
check large 'dd if=/dev/urandom of=/tmp/big bs=1M count=24 && cp /tmp/big big && sync && cmp /tmp/big big'
check middle 'printf XYZ | dd of=big bs=1 seek=1000000 conv=notrunc && printf XYZ | dd of=/tmp/big bs=1 seek=1000000 conv=notrunc && cmp /tmp/big big'
check truncate 'truncate -s 5 a && test "$(cat a)" = hello && truncate -s 10 a && test "$(wc -c < a)" = 10'
check rename 'mkdir d && mv a d/b && test ! -e a && test -f d/b && mv d e && test -f e/b'
check replace 'echo one > x && echo two > y && mv x y && test "$(cat y)" = one && test ! -e x'
check links 'ln e/b hard && test "$(stat -c %h hard)" = 2 && ln -s e/b soft && test "$(readlink soft)" = e/b && test -s soft && rm hard soft'
check modes 'chmod 640 y && test "$(stat -c %a y)" = 640 && touch -d "2020-01-02 03:04:05" y && test "$(stat -c %Y y)" = "$(date -d "2020-01-02 03:04:05" +%s)"'
check exclusive 'set -C; ! echo again > y && echo new > z && rm z'
check unlinked 'echo kept > open && exec 3< open && rm open && test "$(cat <&3)" = kept && exec 3<&- && test ! -e open'
check many 'mkdir many && i=0; while [ $i -lt 1500 ]; do echo $i > many/f$i; i=$((i+1)); done; test "$(ls many | wc -l)" = 1500 && test "$(cat many/f77)" = 77'
check while-listing 'for f in many/*; do rm $f; done; test -z "$(ls many)" && rmdir many'
check names 'touch "a b" "ünï" "$(printf "%0200d" 7)" && ls "a b" "ünï" && test "$(ls | grep -c 0000007)" = 1'
check refused '! mkdir y 2>/dev/null && ! rmdir e 2>/dev/null && ! cat nosuch 2>/dev/null && ! touch nosuch/x 2>/dev/null'
check read-only '! echo x > profile.md && cat profile.md | grep -q "Memory Profile"'
check tar 'mkdir t && tar cf - e y "a b" | tar xf - -C t && test "$(cat t/y)" = one && rm -r t'
check parallel 'for n in 1 2 3 4; do (i=0; while [ $i -lt 100 ]; do echo $n.$i > p$n.$i; i=$((i+1)); done) & done; wait; test "$(cat p[1-4].* | sort | uniq | wc -l)" = 400 && rm p[1-4].*'
check space 'df . | tail -1 | grep -q mnt && test "$(stat -f -c %b .)" -gt 0'
umount /mnt && echo "ok unmount" || echo "FAILED unmount"
mounted && echo "ok mount-again"
check kept 'cmp /tmp/big big && test "$(cat y)" = one && test "$(wc -c < e/b)" = 10'
umount /mnt
echo "the guest is done"
poweroff -f
