#!/usr/bin/perl
# Plants one mistake, or checks that every listed mistake still has its text in the sources.
#
#     tests/plant.pl FILE OLD NEW       prints FILE with OLD replaced by NEW; status 3: OLD is absent, 4: it occurs twice
#     tests/plant.pl --check [LIST...]  all of tests/mutants/*.txt: "N passed, N failed", a mistake each
#
# White space does not count, so that a line may be wrapped anew without its mistakes being lost.
use strict;
use warnings;

sub slurp { local $/; open my $f, '<', $_[0] or return undef; my $s = <$f>; $s }

# A pattern for the text: its words and signs, with any white space between them, and some between two words.
sub pattern {
    my ($text) = @_;
    my ($last, $rx) = ('', '');
    for my $t ($text =~ /\w+|[^\w\s]/g) {
        $rx .= ($last =~ /\w$/ && $t =~ /^\w/ ? '(?:\s|\\\\\n)+' : '(?:\s|\\\\\n)*') if $last ne '';
        $rx .= quotemeta $t;
        $last = $t;
    }
    $rx = "(?<!\\w)$rx" if $text =~ /^\w/;
    $rx .= '(?!\w)' if $text =~ /\w$/;
    return qr/$rx/;
}

if ($ARGV[0] ne '--check') {
    my ($file, $old, $new) = @ARGV;
    my $text = slurp($file) // die "$file: cannot be read\n";
    my $rx = pattern($old);
    my $n = () = $text =~ /$rx/g;
    exit($n ? 4 : 3) if $n != 1;
    $text =~ s/$rx/$new/;
    print $text;
    exit 0;
}

shift;
my ($passed, $failed, %source) = (0, 0);
for my $list (@ARGV ? @ARGV : glob 'tests/mutants/*.txt') {
    my ($file, $what) = ('', '');
    for my $line (split /\n/, slurp($list) // die "$list: cannot be read\n") {
        ($file, $what) = ($1, $2) if $line =~ /^@ (\S+)[^|]*\| ?(.*)/;
        next unless $line =~ /^- (.*)/;
        my $rx = pattern($1);
        $source{$file} //= slurp($file) // '';
        my $n = () = $source{$file} =~ /$rx/g;
        if ($n == 1) { $passed++; next }
        $failed++;
        print "FAILED  $list: $file: $what: its text occurs $n times\n";
    }
}
print "$passed passed, $failed failed\n";
exit($failed ? 1 : 0);
