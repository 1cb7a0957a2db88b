"""Story plots, third part: everyday troubles and their small solutions.

See `corpus_plots` for how a plot is written.
"""

# One template stands on one line, however long it is.
# ruff: noqa: E501

QUARREL = [
    "[N] and [fn] were {the best friends|good friends}. But one day, both of them wanted the [thing]. \"{It is mine|I had it first|Give it to me},\" said [n]. \"{No, it is mine|No, I saw it first},\" said [fn].",
    "They pulled and pulled until the [noun] {broke|fell into the mud}. \"{Look what you did|It is your fault},\" {said [n]|called [n]}. \"{I do not want to play with you any more|Go away},\" said [fn] and went home.",
    "{The next day was long and boring|The next days were lonely}. [N] went to the [place] alone, {but it was no fun|but nobody was there to play with}. {[Fn] sat at home and was sad, too|At home, [fn] felt the same}.",
    "\"{What is the matter|Why do you not play with [fn]}?\" asked [his] [elder]. [N] told the whole story. \"{What is more important, a [noun] or a friend|Can you play with a [noun] alone for ever}?\" asked [his] [elder].",
    "[N] {thought about it the whole night|did not answer, but [he] understood}. In the morning, [he] {repaired the [noun]|cleaned the [noun]} and {took it to the house of [fn]|put it in front of the door of [fn]}.",
    "{At the same time, the door opened|On the way, [he] met [fn]}. \"{I am sorry|I am sorry for what I said},\" they both said at the same time. {Then they had to laugh|Then both of them laughed}.",
    "{From then on, they took turns|Since that day, the [noun] belongs to both of them}: {one day for [n] and one day for [fn]|one week it lives with [n], and the next week with [fn]}.",
]

STUCK_KITE = [
    "On a windy day, [n] {took [his] [colour] kite to the [place]|went out to fly [his] [colour] kite}. It flew {high up in the sky|higher than the houses|like a bird}. \"{Look at it fly|It can almost touch the clouds},\" [he] called.",
    "Then {a strong wind came|the wind changed}, and the kite {got stuck in a tall tree|landed in the top of a tree}. [N] {pulled at the string|jumped and jumped}, but the kite {did not move|stayed where it was}.",
    "[Fn] came by. \"{I can climb up|Let me try},\" [fhe] said. But the {first branch was too high|tree was too tall}. They {threw a stick|shook the tree}. {Only leaves fell down|Only an apple fell down}.",
    "\"{Maybe we need a ladder|Someone tall could help us},\" said [n]. {They asked a farmer, but he had no ladder|They looked for a ladder, but found none}. {They sat down and thought|[N] was ready to give up}.",
    "A little bird {sat down next to them|heard everything}. \"{Why are you so sad|Can I help you}?\" it {asked|sang}. [N] pointed at the kite. {The bird flew up and pulled the string free with its beak|\"Nothing is easier than that,\" said the bird, and it pulled the string free}.",
    "{Slowly, the kite came down|The kite sailed down into the arms of [n]}. \"{Thank you, little bird|You are small, but you are a great helper}!\" said [n]. {[He] gave the bird some crumbs of [his] [food]|[Fn] gave the bird some seeds}.",
    "{Since then, whenever the kite flies, the bird flies next to it|And from that day, the three of them met whenever the wind was good}.",
]

EGG = [
    "One spring day, [n] found {a big egg|a [colour] egg|a strange egg} [hiding]. It was {still warm|cold}, {and there was no nest|and no mother bird was there}. \"{Who do you belong to|What is in there}?\" [he] asked.",
    "[N] took the egg {home|to [fn]} and {put it in a soft scarf|laid it next to the warm oven}. \"{It could be a duck|It is a bird},\" said [n]. \"{Or a dragon|Maybe it is a turtle},\" said [fn].",
    "They waited {one day, two days, three days|for [many] days}. [N] {sang songs to the egg|told the egg a story every night}. {Nothing happened|The egg did not move}.",
    "Then, {early one morning|in the middle of the night}, there was a sound: {crack|knock, knock}! {The egg moved|There was a small hole in it}. {[N] called [fn] at once|\"It is coming,\" called [n]}.",
    "Out came {a small, wet duckling|a tiny yellow chick|a little turtle|a very small dragon}. It looked at [n] and said, \"Mama?\" {Everyone laughed|[N] was so surprised that [he] sat down}.",
    "\"{I am not your mama, but I can be your friend|I will look after you},\" said [n]. {It followed [him] everywhere|It ran behind [him] all day}: to the [place], to the [place2] and even to bed.",
    "{When it was big enough, [n] showed it the wide world|As it grew, [n] taught it everything [he] knew}. {\"Come back soon,\" said [n]. And it came back every spring|It never went far, and every evening it came home}.",
]

NO_SLEEP = [
    "It was late, but [n] could not sleep. {[He] turned to the left and to the right|[He] counted sheep, but it did not help}. \"{I am not tired at all|My head is full of thoughts},\" [he] said.",
    "[His] [elder] {came in|opened the door}. \"{Still awake|Can you not sleep}?\" [ehe] asked. \"{Maybe some warm milk will help|I will tell you a story|Let us open the window},\" [ehe] said.",
    "{They listened to the night|They looked out at the moon}. {An owl called|Somewhere, a dog barked}, and {the wind went through the trees|the river sang its quiet song}. \"{Who is still awake out there|Does the moon never sleep}?\" asked [n].",
    "\"{The moon watches over all of us|The owl works at night and sleeps in the day},\" said [his] [elder]. \"{The flowers sleep, the birds sleep and the fish sleep|The cow sleeps, the horse sleeps and the little mouse sleeps}. {And soon, you will sleep, too|Only one [kind] is still awake}.\"",
    "[N] {smiled|lay down again} and held [his] {teddy bear|pillow|blanket}. {[He] thought of the best thing of the day: [he] and [fn] at the [place]|[He] thought about the day with [fn]}. {[His] eyes became heavy|[He] became warm and calm}.",
    "\"Good night, [n],\" said [his] [elder] {softly|in a quiet voice}. \"Good night,\" said [n], {but it was only a whisper|and [he] was already half asleep}. {The moon looked in and smiled|And then the house was quiet}.",
]

SICK_FRIEND = [
    "One {day|morning}, [n] waited for [fn] at the [place], but [fn] did not come. {\"Where can [fhe] be?\" [he] thought|[He] waited and waited}. {So [he] went to the house of [fn]|Then [he] heard that [fn] was sick}.",
    "[Fn] {was in bed|lay in bed} with {a red nose|a warm head}. \"{I am sick|I have a cold},\" said [fn]. \"{I have to stay in bed for [many] days|I cannot come out to play}. {It is so boring|And outside, the sun is shining}.\"",
    "[N] wanted to {help|make [fhim] happy}. {[He] went home and asked [his] [elder]|\"Wait here,\" [he] said and ran home}. Together, [n] and [his] [elder] {made a hot soup|cooked a soup with carrots}. {[N] also took the [thing]|And [n] packed the [thing], too}.",
    "\"{Here is something for you|Eat this, and you will feel better},\" said [n]. [Fn] {ate all of it|ate the soup, and [fhis] face became warm}. Then [n] {told [fhim] a funny story|read a book to [fhim]|played a game with [fhim]}.",
    "{[N] came back every day|The next day, [n] came again}. {Little by little, [fn] got better|After a few days, [fn] could get up again}. \"{A good friend is the best medicine|You are better than any medicine},\" said [fn].",
    "{Soon, they could play at the [place] again|On the first day outside, they ran all the way to the [place]}. {And when [n] got a cold, [fn] came with soup.|And then [n] began to cough! \"Now it is my turn,\" said [fn], and both laughed.}",
]

BRIDGE = [
    "Near the village, there was a {small|narrow} bridge over the river. One [weather] day, [n] {came from one side|wanted to go over it}, and [fn] came from the other side. In the middle, they {met|stood nose to nose}.",
    "\"{Let me go first|Go back, please. I was here first},\" said [n]. \"{No, you go back|Why should I go back? I am in a hurry},\" said [fn]. {Nobody wanted to go back|They looked at each other and did not move}.",
    "{The sun went higher and higher|One hour passed, and then another}. They {got hungry and tired|became hot and thirsty}. {A duck on the river looked up and said, \"How silly you are!\"|An old turtle in the water shook its head.}",
    "\"{Where do you want to go|Why are you in a hurry}?\" asked [n] {at last|after a long time}. \"I want to {go to the [place]|bring this [food] to my grandma},\" said [fn]. \"And you?\" \"I {want to go to the [place2]|have to bring this [noun] to my [elder]},\" said [n].",
    "{They thought about it|Then [n] had an idea}. {[N] sat down, and [fn] stepped over [him]|They held hands and turned around slowly, like in a dance}. {It was so easy|It took only a moment}!",
    "\"{Why did we not do that at once?|We were silly,}\" said [fn] and laughed. {They wished each other a good day|They waved until they could not see each other any more}. {And when they met again on the bridge, they danced|From then on, they always found a way}.",
]

MARKET = [
    "One morning, [n] went to the market with a {big |small |}basket. [His] [elder] had {asked [him] to buy|said, \"Please bring\"} [sum_a] [fruit]. {It was [his] first time alone|[He] was very proud to go alone}.",
    "{The market was full of people|There were so many things to see}. {There was a man with a drum and a woman with flowers|There were fish and bread and bright cloth}. [N] {looked at everything|walked from one side to the other}.",
    "At the last table, {there was an old woman|there was a friendly farmer}. \"Good morning, [n]. What would you like?\" \"[Sum_a] [fruit], please,\" said [n]. {The basket became heavy|[He] counted them carefully}.",
    "On the way home, [he] met [fn]. \"{I have too many [fruit]|We have so many [fruit] at home},\" said [fn]. \"Here, take [sum_b] more.\" Now [n] had [sum_c] [fruit], because [sum_a] plus [sum_b] is [sum_c].",
    "At home, [his] [elder] {counted them|looked into the basket}. \"{But there are [sum_c]|I asked for [sum_a], and here are [sum_c]}! {How did you do that|Did you get more}?\" [ehe] asked.",
    "\"{[Fn] gave me some|They are a present from [fn]},\" said [n]. {\"Then let us give something back,\" said [his] [elder]|[His] [elder] smiled}. {So they baked a [food] and took it to [fn]|And in the evening, [fn] came to eat with them}.",
]

PLOTS = {
    "quarrel": QUARREL, "kite": STUCK_KITE, "egg": EGG, "sleep": NO_SLEEP,
    "sick": SICK_FRIEND, "bridge": BRIDGE, "market": MARKET,
}
