------------------------------- MODULE Vacuum -------------------------------
(***************************************************************************)
(* Large values stand in objects of their own. An append writes the object *)
(* first, and then commits a reference to it. When it dies in between, the *)
(* object is an orphan, which a vacuum deletes.                            *)
(*                                                                         *)
(* Appenders keep one law: a reference gets into the log in an epoch that  *)
(* was known before its object was written, or never. The vacuum lists     *)
(* objects, raises the epoch of the log, reads every reference in it, and  *)
(* deletes what it has listed and not found. Any process may stop for any  *)
(* time, or for ever, between two of its steps.                            *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, Sequences

CONSTANTS
    Appenders,
    MaxObjects,   \* names that are ever given out
    MaxEpoch,
    MaxAge,       \* clocks count so far
    None

VARIABLES
    epoch,      \* of the head
    named,      \* names that were given out: 1..named
    objects,    \* those whose object is in the store
    place,      \* of each name where its reference stands: a place of the log, or None
    age,        \* of each object, in truth
    appender,   \* [phase, known, own, felt]: the epoch it knows; the object, and its age by the own clock
    vacuum      \* [at, listed, found]: the next of Steps; what it has listed, and the references that it found

vars == <<epoch, named, objects, place, age, appender, vacuum>>

Names == 1..MaxObjects
Places == {"head", "segment", "run"}   \* a reference moves from each to the next
Idle == [phase |-> "idle", known |-> 0, own |-> None, felt |-> 0]
Resting == [at |-> 1, listed |-> {}, found |-> {}]

Init ==
    /\ epoch = 0
    /\ named = 0
    /\ objects = {}
    /\ place = [o \in Names |-> None]
    /\ age = [o \in Names |-> 0]
    /\ appender = [a \in Appenders |-> Idle]
    /\ vacuum = Resting

-----------------------------------------------------------------------------
\* The law, and the order of a vacuum.
InItsEpoch(a) == appender[a].known = epoch   \* DataBeforeReference
LearnsLate == FALSE    \* an epoch that is learnt after the object was written does not count
Steps == <<"list", "raise", "head", "segment", "run", "delete">>
IsOld(o) == TRUE       \* by whatever clock: it keeps no promise
NextEpoch == epoch + 1
Suspended == SUBSET Appenders   \* whose clocks do not count this time

-----------------------------------------------------------------------------
Learn(a) ==
    /\ appender[a].phase = "idle"
    /\ appender' = [appender EXCEPT ![a] = [Idle EXCEPT !.phase = "knows", !.known = epoch]]
    /\ UNCHANGED <<epoch, named, objects, place, age, vacuum>>

WriteObject(a) ==
    /\ appender[a].phase = "knows"
    /\ named < MaxObjects
    /\ named' = named + 1
    /\ objects' = objects \union {named + 1}
    /\ appender' = [appender EXCEPT ![a].phase = "written", ![a].own = named + 1]
    /\ UNCHANGED <<epoch, place, age, vacuum>>

LearnAgain(a) ==
    /\ LearnsLate
    /\ appender[a].phase = "written"
    /\ appender' = [appender EXCEPT ![a].known = epoch]
    /\ UNCHANGED <<epoch, named, objects, place, age, vacuum>>

\* The compare-and-set of the head is carried out, be it long after it was sent.
Commit(a) ==
    /\ appender[a].phase = "written"
    /\ InItsEpoch(a)
    /\ place' = [place EXCEPT ![appender[a].own] = "head"]
    /\ appender' = [appender EXCEPT ![a] = Idle]
    /\ UNCHANGED <<epoch, named, objects, age, vacuum>>

\* It is refused, and written anew under a new name; or its process is killed.
Stop(a) ==
    /\ appender[a].phase # "idle"
    /\ appender' = [appender EXCEPT ![a] = Idle]
    /\ UNCHANGED <<epoch, named, objects, place, age, vacuum>>

Moves(o, from, to) == place[o] = from /\ place' = [place EXCEPT ![o] = to]

Move(o) ==
    /\ Moves(o, "head", "segment") \/ Moves(o, "segment", "run")
    /\ UNCHANGED <<epoch, named, objects, age, appender, vacuum>>

\* Time passes, for the clocks of some appenders alone.
Older(n) == IF n < MaxAge THEN n + 1 ELSE n

Tick(suspended) ==
    /\ \E o \in objects : age[o] < MaxAge
    /\ age' = [o \in Names |-> IF o \in objects THEN Older(age[o]) ELSE age[o]]
    /\ appender' = [a \in Appenders |->
                       IF a \in suspended \/ appender[a].phase # "written" THEN appender[a]
                       ELSE [appender[a] EXCEPT !.felt = Older(@)]]
    /\ UNCHANGED <<epoch, named, objects, place, vacuum>>

-----------------------------------------------------------------------------
IsNext(step) == Steps[vacuum.at] = step
Further == IF vacuum.at = Len(Steps) THEN 1 ELSE vacuum.at + 1

List ==
    /\ IsNext("list")
    /\ \E o \in objects : IsOld(o)
    /\ vacuum' = [vacuum EXCEPT !.at = Further, !.listed = {o \in objects : IsOld(o)}]
    /\ UNCHANGED <<epoch, named, objects, place, age, appender>>

Raise ==
    /\ IsNext("raise")
    /\ epoch < MaxEpoch
    /\ epoch' = NextEpoch
    /\ vacuum' = [vacuum EXCEPT !.at = Further]
    /\ UNCHANGED <<named, objects, place, age, appender>>

Read ==
    /\ Steps[vacuum.at] \in Places
    /\ vacuum' = [vacuum EXCEPT !.at = Further,
                                !.found = @ \union {o \in Names : place[o] = Steps[vacuum.at]}]
    /\ UNCHANGED <<epoch, named, objects, place, age, appender>>

Delete ==
    /\ IsNext("delete")
    /\ objects' = objects \ (vacuum.listed \ vacuum.found)
    /\ vacuum' = Resting
    /\ UNCHANGED <<epoch, named, place, age, appender>>

Cut ==  \* the vacuum is killed
    /\ vacuum # Resting
    /\ vacuum' = Resting
    /\ UNCHANGED <<epoch, named, objects, place, age, appender>>

Next ==
    \/ \E a \in Appenders :
          Learn(a) \/ WriteObject(a) \/ LearnAgain(a) \/ Commit(a) \/ Stop(a)
    \/ \E o \in Names : Move(o)
    \/ \E suspended \in Suspended : Tick(suspended)
    \/ List \/ Raise \/ Read \/ Delete \/ Cut

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
TypeOK ==
    /\ epoch \in 0..MaxEpoch
    /\ named \in 0..MaxObjects
    /\ objects \subseteq 1..named
    /\ \A o \in Names : place[o] \in Places \union {None}
    /\ vacuum.listed \subseteq 1..named

\* The value of every record can be read.
DataReadable == \A o \in Names : place[o] # None => o \in objects

\* A reference that is on its way, and may still get into the log, has its object.
NoneTooLate == \A a \in Appenders :
    appender[a].phase = "written" /\ InItsEpoch(a) => appender[a].own \in objects
=============================================================================
